"""The condition of each drone: its load, its status, and whether it takes work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from shared import names
from shared.reasons import DroneState
from shared.states import IN_HAND, DroneStatus, OrderStatus, drone_status

TAKEN = (*IN_HAND, OrderStatus.CANCELING)
"""The states of orders that hold a slot, or wait for one in a drone's queue."""

SILENT = (DroneStatus.OFFLINE, DroneStatus.REMOVED)
"""The states of drones that may not answer for a long time: orders in their queues do not wait for what they say."""


@dataclass(frozen=True)
class Load:
    """Orders of one drone: running ones, and those that wait in its queue."""

    running: int = 0
    waiting: int = 0

    @property
    def outstanding(self) -> int:
        return self.running + self.waiting


def load_by_drone(db: Session, drone_ids: Collection[str] | None = None) -> defaultdict[str, Load]:
    """The load of these drones, or of every one, by its id; a drone without work has an empty one."""
    columns = (Order.drone_id, Order.status, func.count())
    taken = select(*columns).where(Order.ended_at.is_(None), Order.status.in_(TAKEN))
    if drone_ids is not None:
        taken = taken.where(Order.drone_id.in_(drone_ids))
    found: defaultdict[str, Load] = defaultdict(Load)
    for drone_id, status, count in db.execute(taken.group_by(Order.drone_id, Order.status)):
        if drone_id is None:
            continue
        before = found[drone_id]
        waits = count if status == OrderStatus.ASSIGNED else 0
        found[drone_id] = Load(before.running + count - waits, before.waiting + waits)
    return found


def status_of(drone: Drone, load: Load, now: datetime) -> DroneStatus:
    """The status that users see. A drone drains if either side says so."""
    return drone_status(
        now=now,
        last_seen_at=drone.last_seen_at,
        stopped=drone.stopped_at is not None,
        removed=drone.removed_at is not None,
        draining=drone.draining
        or drone.over_quota_at is not None
        or any((drone.beat or {}).get(said) for said in ("draining", "full", "withheld")),
        running=load.running,
        concurrency=drone.concurrency,
    )


def why_not_starting(drone: Drone, load: Load, now: datetime) -> DroneState | None:
    """Why the drone does not start an order now; None if it does."""
    status = status_of(drone, load, now)
    match status:
        case DroneStatus.REMOVED:
            return DroneState(drone=drone.name, code="removed")
        case DroneStatus.OFFLINE if drone.keys_revoked_at is not None:
            return DroneState(drone=drone.name, code="keys_revoked")
        case DroneStatus.OFFLINE if drone.last_seen_at is None:
            return DroneState(drone=drone.name, code="never_started")
        case DroneStatus.OFFLINE:
            return _silent(drone, "offline", drone.stopped_at or drone.last_seen_at, now)
        case DroneStatus.UNRESPONSIVE:
            return _silent(drone, "unresponsive", drone.last_seen_at, now)
        case DroneStatus.DRAINING:
            return _draining(drone)
        case DroneStatus.BUSY:
            return DroneState(drone=drone.name, code="busy", running=load.running, slots=drone.concurrency)
        case _:
            return None


def _silent(
    drone: Drone, code: Literal["offline", "unresponsive"], since: datetime | None, now: datetime
) -> DroneState:
    return DroneState(drone=drone.name, code=code, since=since, today=is_today(since, now))


def _draining(drone: Drone) -> DroneState:
    beat = drone.beat or {}
    if drone.over_quota_at is not None:
        return DroneState(drone=drone.name, code="over_quota")
    if full := beat.get("full"):
        return DroneState(drone=drone.name, code="disk_full", detail=str(full))
    if withheld := beat.get("withheld"):
        return DroneState(drone=drone.name, code="withheld", detail=str(withheld))
    return DroneState(drone=drone.name, code="leaving" if beat.get("leaving") else "draining")


def is_today(moment: datetime | None, now: datetime) -> bool:
    """Whether the time without a date is enough for people."""
    return moment is None or moment.date() == now.date()


def worker_of(drone: Drone) -> str:
    """Celery's name of the drone's worker, by the name that the drone reported: a new one takes effect when it does."""
    return names.worker(drone.id, drone.host, str((drone.beat or {}).get("name", "")))
