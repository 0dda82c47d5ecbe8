"""Moves an order that waits behind a full drone to one that can start it now.

It moves only to a free slot, and each slot is given out once per round. A moved order therefore begins, and does not
move again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order
from control_plane.drones.load import Load, load_by_drone, status_of
from control_plane.orders.assignment import dispatch
from control_plane.orders.ending import requeue
from control_plane.orders.placement import Placement, fits
from shared.errors import Conflict
from shared.reasons import Placed, TakenBack
from shared.states import DroneStatus, OrderStatus
from shared.terminal import logs

log = logs.get(__name__)


class FreeSlots:
    """The slots of online drones that no order holds or is about to hold, as one round found them."""

    def __init__(self, db: Session, load: Mapping[str, Load], now: datetime) -> None:
        self._db = db
        self._free: dict[Drone, int] = {}
        for drone in db.scalars(select(Drone).where(Drone.removed_at.is_(None)).order_by(Drone.name)):
            free = drone.concurrency - load[drone.id].outstanding
            if free > 0 and status_of(drone, load[drone.id], now) is DroneStatus.ONLINE:
                self._free[drone] = free

    def take(self, order: Order) -> Drone | None:
        """Take a slot of the fitting drone with the largest share of free slots; None if no drone fits."""
        fitting = [drone for drone, free in self._free.items() if free > 0 and fits(drone, order)]
        if not fitting:
            return None
        chosen = max(fitting, key=lambda drone: self._free[drone] / drone.concurrency)
        self._free[chosen] -= 1
        return chosen


def hand_over(core: Core, waited: Dispatch, target: Drone, why: TakenBack) -> None:
    """Send an order whose offer was withdrawn to `target`, or back to the queue if `target` has no room any more."""
    try:
        _hand_over(core, waited, target, why)
    except Conflict as error:
        # An earlier order of its session was queued again meanwhile. The next round finds the key revoked and
        # requeues this order.
        log.info("an order was not moved to another queue", order=waited.order_id, why=error.what)
        return
    core.broker.changed(waited.order_id)


def _hand_over(core: Core, waited: Dispatch, target: Drone, why: TakenBack) -> None:
    with core.database.write() as db:
        order = db.get_one(Order, waited.order_id, with_for_update=True)
        if order.run_id != waited.id or order.status != OrderStatus.ASSIGNED:
            return
        requeue(db, core, order, why)
        drone = db.get_one(Drone, target.id)
        load = load_by_drone(db, [drone.id])[drone.id]
        has_room = load.outstanding < drone.concurrency
        if has_room and status_of(drone, load, core.clock.now()) is DroneStatus.ONLINE:
            dispatch(db, core, order, Placement(drone, Placed(code="free_slot", drone=drone.name)))
    log.info(
        "an order was moved to another queue", order=order.id, left=why.state.drone, why=why.state.code, to=target.name
    )
