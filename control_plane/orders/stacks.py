"""Stacks: which sessions build on the work of others, and which of them are due to be brought up to date."""

from __future__ import annotations

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.orders import Order
from control_plane.db.stacks import Stack
from shared.names import new_id
from shared.states import OrderStatus


def note_stacks(db: Session, core: Core, order: Order) -> None:
    """Record that the order's session builds on those of the orders that it starts after."""
    for each in order.after:
        lower = db.get_one(Order, each)
        if lower.session_id == order.session_id:
            continue
        known = db.scalar(select(Stack).where(Stack.session_id == order.session_id, Stack.lower_id == lower.session_id))
        if known is None:
            db.add(_new(core, order, lower))
        else:
            known.order_id, known.due = lower.id, False
        db.flush()


def _new(core: Core, order: Order, lower: Order) -> Stack:
    return Stack(
        id=new_id(),
        organization_id=order.organization_id,
        session_id=order.session_id,
        lower_id=lower.session_id,
        order_id=lower.id,
        due=False,
        created_at=core.clock.now(),
    )


def order_ended(db: Session, _core: Core, order: Order) -> None:
    """The sessions that build on this order's are due, if it left new work."""
    if order.status == OrderStatus.SUCCEEDED and order.head_commit is not None:
        db.execute(update(Stack).where(Stack.lower_id == order.session_id, Stack.order_id != order.id).values(due=True))
