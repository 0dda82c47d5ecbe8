"""Items that need no decision, dismissed for the whole organization and put back: a closed row of `waits` records who.

The row's run is the order or race itself, so it never meets a question of a run.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, get_args

from sqlalchemy import ColumnElement, SQLColumnExpression, func, select
from sqlalchemy.orm import InstrumentedAttribute
from sqlalchemy.orm import Session as Db

from control_plane.contract.declarations import inbox as declared
from control_plane.contract.declarations.inbox import DismissedItem, InboxKind
from control_plane.contract.validation.checks import shown
from control_plane.core import Caller, Core
from control_plane.core.lookups.groups import find_group
from control_plane.core.lookups.ids import full_order_id
from control_plane.db.groups import OrderGroup
from control_plane.db.memory import MemoryNote
from control_plane.db.orders import Order
from control_plane.db.waits import Wait
from control_plane.operations.gateway import performs
from control_plane.orders.follow_up import FollowUp
from control_plane.orders.waits import find_wait
from shared.errors import Conflict, NotFound

NEEDED: dict[str, FollowUp] = {"reply": "question", "checks": "verification", "spent": "budget"}
"""What an ended order needs, by the kind of its item."""
_SUBJECT = "inbox"


def is_dismissed(thing: InstrumentedAttribute[str], since: SQLColumnExpression[Any]) -> ColumnElement[bool]:
    """Whether this order or race was dismissed since that time: one that ended again waits again."""
    done = Wait.run_id == thing, Wait.subject == _SUBJECT, Wait.closed_at >= since
    return select(Wait.number).where(*done).exists()


@performs(declared.DISMISS)
def dismiss(core: Core, caller: Caller, item_id: str) -> DismissedItem:
    """Take an item out of the inbox; of two users at once, the first one is named.

    Raises NotFound, and Conflict for an item that only a decision ends.
    """

    def work(db: Db) -> DismissedItem:
        kind, thing, order = _found(db, caller, item_id)
        since = _ended_at(db, thing)
        row = find_wait(db, thing.id, _SUBJECT) or Wait(run_id=thing.id, subject=_SUBJECT)
        if row.closed_at is None or (since is not None and row.closed_at < since):
            now = core.clock.now()
            row.organization_id, row.order_id, row.kind, row.role = caller.organization_id, order.id, kind, "operator"
            row.text, row.choices, row.default, row.deadline, row.details = "", [], None, None, {}
            row.answer, row.answered_by, row.decided_by = "dismissed", caller.user, "person"
            row.asked_at = row.answered_at = row.closed_at = now
            db.add(row)
        return DismissedItem(id=f"{kind}:{thing.id}", dismissed_by=row.answered_by, dismissed_at=row.closed_at)

    return core.database.transact(work)


@performs(declared.RESTORE)
def restore(core: Core, caller: Caller, item_id: str) -> DismissedItem:
    """Put a dismissed item back, or a note that was decided; no effect on one that waits. Raises as `dismiss`."""

    def work(db: Db) -> DismissedItem:
        if item_id.startswith("memory:"):
            _propose_again(db, caller, item_id)
            return DismissedItem(id=item_id, dismissed_by=None, dismissed_at=None)
        kind, thing, _ = _found(db, caller, item_id)
        if row := find_wait(db, thing.id, _SUBJECT):
            db.delete(row)
        return DismissedItem(id=f"{kind}:{thing.id}", dismissed_by=None, dismissed_at=None)

    return core.database.transact(work)


def _found(db: Db, caller: Caller, item_id: str) -> tuple[str, Order | OrderGroup, Order]:
    """The item's kind, its order or race, and the order or the race's first one. Raises NotFound and Conflict."""
    kind, _, written = item_id.partition(":")
    if kind == "race":
        try:
            race = find_group(db, caller, "race", written, lock=True)
        except NotFound:
            raise _unknown(item_id) from None
        first = select(Order).where(Order.group_id == race.id).order_by(Order.number).limit(1)
        return "race", race, db.scalars(first).one()
    if kind in NEEDED:
        wanted = Order.id == full_order_id(db, caller, written), Order.organization_id == caller.organization_id
        waits = Order.follow_up == NEEDED[kind], Order.ended_at.is_not(None)
        order = db.scalar(select(Order).where(*wanted, *waits).with_for_update())
        if order is None:
            raise _unknown(item_id)
        return kind, order, order
    if kind not in get_args(InboxKind):
        raise _unknown(item_id)
    raise Conflict(
        f"{shown(item_id)} cannot be dismissed: it needs a decision",
        code="E-INBOX-DECIDE",
        next=f"fleet inbox --kind {kind}    shows the command that acts",
    )


def _ended_at(db: Db, thing: Order | OrderGroup) -> datetime | None:
    """When the order, or the last one of the race, ended."""
    if isinstance(thing, Order):
        return thing.ended_at
    return db.scalar(select(func.max(Order.ended_at)).where(Order.group_id == thing.id))


def _propose_again(db: Db, caller: Caller, item_id: str) -> None:
    wanted = MemoryNote.organization_id == caller.organization_id, MemoryNote.id == item_id.partition(":")[2]
    note = db.scalar(select(MemoryNote).where(*wanted).with_for_update())
    if note is None:
        raise _unknown(item_id)
    note.state, note.decided_at, note.decided_by = "proposed", None, None


def _unknown(item_id: str) -> NotFound:
    return NotFound(f"no item of the inbox has the id {shown(item_id)}", code="E-INBOX-404", next="fleet inbox --json")
