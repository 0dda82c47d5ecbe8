"""What follows from the ends of a race's orders: the others are canceled, or an order judges their work."""

from __future__ import annotations

from functools import partial

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.core.rows import each_alone
from control_plane.db.groups import OrderGroup
from control_plane.db.orders import Order
from control_plane.lookups.organizations import system_caller
from control_plane.operations.orders.canceling import cancel_unfinished
from control_plane.services.judging import ask_judgment
from shared.states import OrderStatus


def go_on(core: Core) -> None:
    """Do what is due for all races; may be repeated."""
    end_losers(core)
    ask_judgments(core)


def end_losers(core: Core) -> None:
    """Cancel the orders of decided races that did not win and have not ended."""
    lost = (
        select(Order.id, OrderGroup.id, OrderGroup.winner_id)
        .join(OrderGroup, OrderGroup.id == Order.group_id)
        .where(
            Order.ended_at.is_(None),
            Order.status != OrderStatus.CANCELING,
            OrderGroup.winner_id.is_not(None),
            OrderGroup.winner_id != Order.id,
        )
    )
    with core.database.read() as db:
        found = db.execute(lost).all()

    def end(lost: Row[str, str, str | None]) -> None:
        order_id, race_id, winner_id = lost
        cancel_unfinished(core, system_caller(core), order_id, f"order {winner_id} won race {race_id}")

    each_alone("races", found, end)


def ask_judgments(core: Core) -> None:
    """Create the order that judges for each race whose orders have all ended, if it is decided that way."""
    own = Order.group_id == OrderGroup.id
    unended = select(Order.id).where(own, Order.ended_at.is_(None)).exists()
    with_work = select(Order.id).where(own, Order.status == OrderStatus.SUCCEEDED, Order.head_commit.is_not(None))
    undecided = OrderGroup.winner_id.is_(None), OrderGroup.judge_id.is_(None)
    due = select(OrderGroup.id).where(OrderGroup.pick == "judge", *undecided, ~unended, with_work.exists())
    with core.database.read() as db:
        found = db.scalars(due).all()

    def ask(race_id: str) -> None:
        order_id = core.database.transact(partial(_judged, core, race_id))
        if order_id is not None:
            core.broker.changed(order_id)

    each_alone("races", found, ask)


def _judged(core: Core, race_id: str, db: Session) -> str | None:
    race = db.get_one(OrderGroup, race_id, with_for_update=True, populate_existing=True)
    return ask_judgment(db, core, race)
