"""Queued orders find their drone, urgent ones first, then in order of submission."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select

from control_plane.core import Core
from control_plane.db.models import Order
from control_plane.dispatching.dispatch import place_and_dispatch
from control_plane.dispatching.placement import place
from shared.errors import Conflict
from shared.states import OrderStatus


def place_queued(core: Core) -> int:
    """Dispatch every queued order that a drone takes; on the others write why none does. Returns how many went."""
    count = 0
    for order_id, may_go in _movable(core):
        try:
            with core.database.write() as db:
                order = db.get_one(Order, order_id, with_for_update=True)
                queued = order.status == OrderStatus.QUEUED
                went = queued and place_and_dispatch(db, core, order, may_go=may_go) is not None
        except Conflict:
            # Canceled, or placed by another, since we looked.
            continue
        core.broker.stepped([order_id])
        count += went
    return count


def _movable(core: Core) -> Sequence[tuple[str, bool]]:
    """Queued orders whose placement or reason would change, and whether a drone takes each; the others cost no write.

    An order for which a drone turns up only now has to wait for the next round: a more urgent one may have been looked
    at just before, and must not be overtaken.
    """
    queued = select(Order).where(Order.status == OrderStatus.QUEUED)
    with core.database.read() as db:
        orders = db.scalars(queued.order_by(Order.priority.desc(), Order.number)).all()
        placements = [(order, place(db, core, order)) for order in orders]
        return [
            (order.id, found.drone is not None)
            for order, found in placements
            if found.drone is not None or found.reason != order.reason
        ]
