"""What each drone has in hand and whether it takes work, in words that can stand on an order."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from shared.states import IN_HAND, DroneStatus, OrderStatus, drone_status

_TAKEN = (*IN_HAND, OrderStatus.CANCELING)


@dataclass(frozen=True)
class Load:
    """Orders of one drone: those that it runs, and those that wait in its queue."""

    running: int = 0
    waiting: int = 0

    @property
    def outstanding(self) -> int:
        return self.running + self.waiting


def load_by_drone(db: Session) -> defaultdict[str, Load]:
    """The load of every drone by its id; one without work has an empty one."""
    columns = (Order.drone_id, Order.status, func.count())
    taken = select(*columns).where(Order.ended_at.is_(None), Order.status.in_(_TAKEN))
    found: defaultdict[str, Load] = defaultdict(Load)
    for drone_id, status, count in db.execute(taken.group_by(Order.drone_id, Order.status)):
        if drone_id is None:
            continue
        before = found[drone_id]
        waits = count if status == OrderStatus.ASSIGNED else 0
        found[drone_id] = Load(before.running + count - waits, before.waiting + waits)
    return found


def status_of(drone: Drone, load: Load, now: datetime) -> DroneStatus:
    """The word that the board shows. A drone drains where either side says so."""
    return drone_status(
        now=now,
        last_seen_at=drone.last_seen_at,
        stopped=drone.stopped_at is not None,
        removed=drone.removed_at is not None,
        draining=drone.draining or any((drone.beat or {}).get(said) for said in ("draining", "full")),
        running=load.running,
        concurrency=drone.concurrency,
    )


def standing(drone: Drone, load: Load, now: datetime) -> str:
    """Why the drone does not start an order now (`is offline since 12:03 UTC`); '' if it does."""
    match status_of(drone, load, now):
        case DroneStatus.REMOVED:
            return "was removed"
        case DroneStatus.OFFLINE if drone.last_seen_at is None:
            return "was registered but never started (next: drone start)"
        case DroneStatus.OFFLINE:
            return f"is offline since {clock_time(drone.stopped_at or drone.last_seen_at, now)}"
        case DroneStatus.UNRESPONSIVE:
            return f"is unresponsive since {clock_time(drone.last_seen_at, now)}"
        case DroneStatus.DRAINING:
            return _why_draining(drone)
        case DroneStatus.BUSY:
            return f"is busy: {load.running} of {drone.concurrency} slots in use"
        case _:
            return ""


def _why_draining(drone: Drone) -> str:
    beat = drone.beat or {}
    if full := beat.get("full"):
        return f"takes no work, as its disk is full: {full} (next: make room there)"
    if beat.get("leaving"):
        return "stops when its run has ended"
    return f"is draining (next: fleet drone resume {drone.name})"


def can(drone: Drone, ability: str) -> bool:
    """Whether the drone said of itself that it can do this (`shared.events.ABILITIES`); an older one says nothing."""
    return ability in (drone.beat or {}).get("abilities", ())


def clock_time(moment: datetime | None, now: datetime) -> str:
    """A time for people: the hour alone where it was today."""
    if moment is None:
        return "the beginning"
    return f"{moment:%H:%M} UTC" if moment.date() == now.date() else f"{moment:%Y-%m-%d %H:%M} UTC"
