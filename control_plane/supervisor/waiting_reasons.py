"""The reason on an order that waits in a drone's queue stays true while the drone goes, comes back or fills up."""

from __future__ import annotations

from sqlalchemy import select, update

from control_plane.core import Core
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.orders.dispatch import waiting_reason
from shared.states import OrderStatus


def refresh_reasons(core: Core) -> list[str]:
    """Rewrite the reasons that are no longer true; returns those orders' ids."""
    assigned = Order.ended_at.is_(None), Order.status == OrderStatus.ASSIGNED
    waiting = select(Order, Drone).join(Drone, Drone.id == Order.drone_id).where(*assigned)
    with core.database.read() as db:
        reasons = {
            order: waiting_reason(db, core, drone, order.reason)
            for order, drone in db.execute(waiting)
            if not order.reason.startswith("cannot be sent")
        }
    stale = {order: reason for order, reason in reasons.items() if reason != order.reason}
    if not stale:
        return []
    with core.database.write() as db:
        for order, reason in stale.items():
            # Only as long as it still waits in that queue: a run that began meanwhile has its own reason.
            same = update(Order).where(
                Order.id == order.id, Order.status == OrderStatus.ASSIGNED, Order.run_id == order.run_id
            )
            db.execute(same.values(reason=reason), execution_options={"synchronize_session": False})
    changed = [order.id for order in stale]
    core.broker.stepped(changed)
    return changed
