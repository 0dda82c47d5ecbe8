"""Adds missing waits: a collector of the previous version stores approval requests as steps without a wait row."""

from __future__ import annotations

from sqlalchemy import select

from control_plane.core import Core
from control_plane.core.rows import each_alone
from control_plane.db.orders import Order
from control_plane.db.waits import Wait
from control_plane.orders.waits import ask_missing
from shared.states import OrderStatus


def ask_what_is_missing(core: Core) -> list[str]:
    """Write the missing waits; returns the orders that got one."""
    asked = select(Wait.number).where(Wait.run_id == Order.run_id, Wait.closed_at.is_(None)).exists()
    without = select(Order.id).where(Order.ended_at.is_(None), Order.status == OrderStatus.AWAITING_APPROVAL, ~asked)
    with core.database.read() as db:
        order_ids = db.scalars(without).all()
    asked_now = each_alone("waits", order_ids, lambda order_id: order_id if _ask(core, order_id) else "")
    found = list(filter(None, asked_now))
    core.broker.changed_by_supervisor(found)
    return found


def _ask(core: Core, order_id: str) -> bool:
    with core.database.write() as db:
        order = db.get_one(Order, order_id, with_for_update=True)
        if order.status != OrderStatus.AWAITING_APPROVAL or order.run_id is None:
            return False
        return ask_missing(db, core, order.run_id) > 0
