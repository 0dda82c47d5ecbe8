"""Figures of drones: their states, slots and machines, their queues, who collects their events, and their pools."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from prometheus_client.core import Metric
from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.broker.broker import Broker
from control_plane.db.drones import Drone
from control_plane.db.installation import Lease
from control_plane.db.runs import Run, Step
from control_plane.drones.condition import load_by_drone, status_of
from control_plane.orders.pools import pool_needs, pools_of
from control_plane.telemetry.metrics.families import gauge
from shared.states import DroneStatus

LABELS = ("organization", "drone")
NEWEST_STEPS = 500
RECENT = timedelta(minutes=1)
"""Only steps that were stored within this time say something about now."""
_MB = 1_000_000
_STATES = tuple(each for each in DroneStatus if each != DroneStatus.REMOVED)


@dataclass(frozen=True)
class ListedDrone:
    """A drone with the labels of its series."""

    id: str
    labels: tuple[str, str]
    """Its organization and its name."""


def listed_drones(db: Session, names: Mapping[str, str]) -> list[tuple[ListedDrone, Drone]]:
    """The drones that are not removed."""
    rows = db.scalars(select(Drone).where(Drone.removed_at.is_(None)).order_by(Drone.registered_at, Drone.id))
    return [(ListedDrone(row.id, (names[row.organization_id], row.name)), row) for row in rows]


def drone_metrics(
    db: Session, names: Mapping[str, str], drones: Sequence[tuple[ListedDrone, Drone]], now: datetime
) -> Iterator[Metric]:
    """`names`: of the organizations, by id."""
    loads = load_by_drone(db)
    states = Counter((each.labels[0], status_of(row, loads[row.id], now)) for each, row in drones)
    by_state = [((name, status.value), states[name, status]) for name in names.values() for status in _STATES]
    yield gauge("dronefleet_drones", "Drones.", ("organization", "status"), by_state)
    slots = [(each.labels, row.concurrency) for each, row in drones]
    yield gauge("dronefleet_drone_slots", "Orders that it runs at a time.", LABELS, slots)
    running = [(each.labels, loads[row.id].running) for each, row in drones]
    yield gauge("dronefleet_drone_orders_running", "Orders that it runs.", LABELS, running)
    seen = [(each.labels, (now - row.last_seen_at).total_seconds()) for each, row in drones if row.last_seen_at]
    yield gauge("dronefleet_drone_last_seen_seconds", "Seconds since its last heartbeat.", LABELS, seen)
    yield from _disks(drones)
    help_ = "Seconds from recording an event to storing it, median of the last minute."
    yield gauge("dronefleet_event_lag_seconds", help_, LABELS, _lags(db, [each for each, _ in drones], now))


def _disks(drones: Sequence[tuple[ListedDrone, Drone]]) -> Iterator[Metric]:
    machines = [(each.labels, (row.beat or {}).get("machine") or {}) for each, row in drones]
    free = [(labels, machine["disk_free_mb"] * _MB) for labels, machine in machines if "disk_free_mb" in machine]
    yield gauge("dronefleet_drone_disk_free_bytes", "Free where it keeps its workspaces.", LABELS, free)
    size = [(labels, machine["disk_mb"] * _MB) for labels, machine in machines if "disk_mb" in machine]
    yield gauge("dronefleet_drone_disk_bytes", "Size of that disk.", LABELS, size)


def _lags(db: Session, drones: Sequence[ListedDrone], now: datetime) -> Iterator[tuple[tuple[str, str], float]]:
    """The newest steps by their primary key: how many are stored in all makes no difference."""
    newest = select(Step.run_id, Step.at, Step.drone_at).order_by(Step.id.desc()).limit(NEWEST_STEPS).subquery()
    wanted = select(Run.drone_id, newest.c.at, newest.c.drone_at).join(newest, newest.c.run_id == Run.id)
    found: defaultdict[str, list[float]] = defaultdict(list)
    for drone_id, stored_at, recorded_at in db.execute(wanted.where(newest.c.at > now - RECENT)):
        found[drone_id].append((stored_at - recorded_at).total_seconds())
    for drone in drones:
        if drone.id in found:
            yield drone.labels, median(found[drone.id])


# --- queues and streams in the broker -------------------------------------------------------------


def queue_metrics(broker: Broker, drones: Sequence[ListedDrone]) -> Iterator[Metric]:
    """Raises Unreachable, or FleetFault if the broker refuses the control plane's log-in."""
    found = broker.backlogs([drone.id for drone in drones])
    queued = [(drone.labels, found[drone.id].queued) for drone in drones]
    yield gauge("dronefleet_queue_messages", "Orders in its queue that it has not taken.", LABELS, queued)
    unstored = [(drone.labels, found[drone.id].unstored) for drone in drones]
    yield gauge("dronefleet_stream_entries", "Its events that are not stored.", LABELS, unstored)
    ages = [(drone.labels, found[drone.id].oldest_s) for drone in drones]
    help_ = "Seconds since the oldest event that is not stored was sent; 0: all are."
    yield gauge("dronefleet_stream_oldest_seconds", help_, LABELS, ages)


# --- leases: which work of the background has an owner, and for how long --------------------------

_LEADER = "leader"
_COLLECTOR = "collector"


def lease_metrics(db: Session, drones: Sequence[ListedDrone], now: datetime) -> Iterator[Metric]:
    """Leases of removed drones are left out."""
    names = {drone.id: drone.labels for drone in drones}
    left: list[tuple[tuple[str, str, str], float]] = []
    held = Counter({_LEADER: 0, _COLLECTOR: 0})
    for lease in db.scalars(select(Lease).order_by(Lease.name)):
        kind, _, drone_id = lease.name.partition(":")
        seconds = (lease.expires_at - now).total_seconds()
        if kind == _LEADER:
            labels = (_LEADER, "", "")
        elif drone_id in names:
            labels = (_COLLECTOR, *names[drone_id])
        else:
            continue
        left.append((labels, seconds))
        held[labels[0]] += seconds > 0
    yield gauge("dronefleet_leases", "Leases that are held.", ("lease",), [((kind,), held[kind]) for kind in held])
    help_ = "Seconds until a lease expires unless it is renewed; negative once it has."
    yield gauge("dronefleet_lease_seconds", help_, ("lease", "organization", "drone"), left)


# --- pools, which an autoscaler follows -----------------------------------------------------------


def pool_metrics(db: Session, names: Mapping[str, str], now: datetime) -> Iterator[Metric]:
    """`names`: of the organizations, by id."""
    labels = ("organization", "pool")
    needs = [((names[each.pool.organization_id], each.pool.name), each) for each in pool_needs(db, now, pools_of(db))]
    wanted = [(own, need.wanted) for own, need in needs]
    yield gauge("dronefleet_pool_wanted", "Drones that the pool should have now.", labels, wanted)
    waiting = [(own, need.waiting) for own, need in needs]
    yield gauge("dronefleet_pool_waiting", "Orders that wait for a drone of the pool.", labels, waiting)
    drones = [(own, need.drones) for own, need in needs]
    yield gauge("dronefleet_pool_drones", "Present drones of the pool.", labels, drones)
