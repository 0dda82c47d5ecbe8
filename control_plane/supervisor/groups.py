"""Moves groups of orders on: races are decided, and batches submit their next orders."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sqlalchemy import Row, Select, func, select
from sqlalchemy.orm import Session

from control_plane.contract.declarations.batches import BatchRowRequest
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import system_caller
from control_plane.core.rows import each_alone
from control_plane.db.batches import BatchRow
from control_plane.db.groups import OrderGroup
from control_plane.db.installation import Organization
from control_plane.db.orders import Order
from control_plane.operations.batches.submitting import draft_of_row
from control_plane.operations.orders.canceling import cancel_unfinished
from control_plane.operations.orders.retrying import retry_within
from control_plane.orders.draft import create_order
from control_plane.orders.numbers import lock_numbers
from control_plane.services.judging import ask_judgment
from shared.errors import Refused
from shared.states import OrderStatus


def decide_races(core: Core) -> None:
    """Cancel the orders that lost, and ask for judgments; may be repeated."""
    end_losers(core)
    ask_judgments(core)


def losers() -> Select[str, str, str | None]:
    """The orders of decided races that did not win and have not ended, each with its race and the winner."""
    return (
        select(Order.id, OrderGroup.id, OrderGroup.winner_id)
        .join(OrderGroup, OrderGroup.id == Order.group_id)
        .where(
            Order.ended_at.is_(None),
            Order.status != OrderStatus.CANCELING,
            OrderGroup.winner_id.is_not(None),
            OrderGroup.winner_id != Order.id,
        )
    )


def end_losers(core: Core) -> None:
    """Cancel the orders of decided races that did not win and have not ended."""
    with core.database.read() as db:
        found = db.execute(losers()).all()

    def end(lost: Row[str, str, str | None]) -> None:
        order_id, race_id, winner_id = lost
        cancel_unfinished(core, system_caller(core), order_id, f"order {winner_id} won race {race_id}")

    each_alone("races", found, end)


def unjudged() -> Select[str]:
    """The races whose orders have all ended and that a judge is to decide."""
    own = Order.group_id == OrderGroup.id
    unended = select(Order.id).where(own, Order.ended_at.is_(None)).exists()
    with_work = select(Order.id).where(own, Order.status == OrderStatus.SUCCEEDED, Order.head_commit.is_not(None))
    undecided = OrderGroup.winner_id.is_(None), OrderGroup.judge_id.is_(None)
    return select(OrderGroup.id).where(OrderGroup.pick == "judge", *undecided, ~unended, with_work.exists())


def ask_judgments(core: Core) -> None:
    """Create the order that judges for each race that needs one."""
    with core.database.read() as db:
        found = db.scalars(unjudged()).all()

    def ask(race_id: str) -> None:
        order_id = core.database.transact(partial(_judged, core, race_id))
        if order_id is not None:
            core.broker.changed(order_id)

    each_alone("races", found, ask)


def _judged(core: Core, race_id: str, db: Session) -> str | None:
    race = db.get_one(OrderGroup, race_id, with_for_update=True, populate_existing=True)
    return ask_judgment(db, core, race)


# --- batches --------------------------------------------------------------------------------------
#
# As many orders of each batch are under way as it asked for, and no more. A row and its order are written in one
# transaction, under the lock of the batch's row: whatever ends this process, and however many supervisors there are,
# each row gets exactly one order.

AT_ONCE = 20
"""Orders of one transaction: while it runs, no other order can be submitted."""
MAX_ORDER_KEY = 64


def submit_due(core: Core) -> None:
    """Submit the orders that are due, of all batches; may be repeated."""
    with core.database.read() as db:
        found = db.scalars(batches_due()).all()
    each_alone("batches", found, partial(_submit_batch, core))


def _submit_batch(core: Core, batch_id: str) -> None:
    more = True
    while more:
        order_ids = core.database.transact(partial(_submit_some, core, batch_id))
        for order_id in filter(None, order_ids):
            core.broker.changed(order_id)
        # A refused row leaves its room to the next one.
        more = len(order_ids) == AT_ONCE or None in order_ids


def batches_due() -> Select[str]:
    """The batches with rows that wait, and room for their orders."""
    waits = select(BatchRow.number).where(BatchRow.batch_id == OrderGroup.id, BatchRow.state == "waiting").exists()
    begun = (OrderGroup.kind == "batch", OrderGroup.begun_at.is_not(None), OrderGroup.canceled_at.is_(None))
    room = _unended().correlate(OrderGroup).where(Order.group_id == OrderGroup.id).scalar_subquery()
    return select(OrderGroup.id).where(*begun, waits, room < OrderGroup.parallel)


def _submit_some(core: Core, batch_id: str, db: Session) -> list[str | None]:
    """Submit the next rows, for which there is room; returns their orders, None for a row that was refused."""
    lock_numbers(db)
    batch = db.get_one(OrderGroup, batch_id, with_for_update=True, populate_existing=True)
    if batch.canceled_at is not None or batch.begun_at is None:
        return []
    room = (batch.parallel or 0) - (db.scalar(_unended().where(Order.group_id == batch_id)) or 0)
    if room <= 0:
        return []
    waiting = select(BatchRow).where(BatchRow.batch_id == batch_id, BatchRow.state == "waiting")
    rows = db.scalars(waiting.order_by(BatchRow.number).limit(min(room, AT_ONCE))).all()
    owner = db.get_one(Organization, batch.organization_id)
    caller = Caller(owner.id, owner.name, "operator", batch.user, user_id=batch.user_id)
    return [_submit(db, core, caller, batch, row) for row in rows]


def _unended() -> Select[int]:
    return select(func.count(Order.id)).where(Order.ended_at.is_(None))


def _submit(db: Session, core: Core, caller: Caller, batch: OrderGroup, row: BatchRow) -> str | None:
    """Submit the row's order, or run it again. A refusal is noted with the row, and the other rows go on."""
    before = row.order_id
    try:
        # Only this row is undone by a refusal.
        with db.begin_nested():
            if before is None:
                row.order_id = _submitted(db, core, caller, batch, row)
            else:
                retry_within(db, core, caller, before)
    except Refused as refusal:
        row.state, row.order_id = ("refused", None) if before is None else ("submitted", before)
        row.problem = f"{refusal.what} ({refusal.code})"
        return None
    row.state, row.problem = "submitted", None
    return row.order_id


def _submitted(db: Session, core: Core, caller: Caller, batch: OrderGroup, row: BatchRow) -> str:
    draft = draft_of_row(db, core, caller, BatchRowRequest.model_validate(row.request))
    draft.session.name = f"{batch.name}: {row.key}"[:200]
    named = replace(
        draft,
        group_id=batch.id,
        group_key=row.key[:MAX_ORDER_KEY],
        # The row's lock prevents a second order; the key lets the database refuse one, too.
        idempotency_key=f"batch {batch.id} row {row.number}",
        request_hash=row.digest,
    )
    return create_order(db, core, named).id
