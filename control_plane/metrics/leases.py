"""Figures of leases: which work of the background has an owner, and for how long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from prometheus_client.core import Metric
from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.db.installation import Lease
from control_plane.metrics.drones import ListedDrone
from control_plane.metrics.families import gauge

LEADER = "leader"
COLLECTOR = "collector"


def lease_metrics(db: Session, drones: Sequence[ListedDrone], now: datetime) -> Iterator[Metric]:
    """Leases of removed drones are left out."""
    names = {drone.id: drone.labels for drone in drones}
    left: list[tuple[tuple[str, str, str], float]] = []
    held = Counter({LEADER: 0, COLLECTOR: 0})
    for lease in db.scalars(select(Lease).order_by(Lease.name)):
        kind, _, drone_id = lease.name.partition(":")
        seconds = (lease.expires_at - now).total_seconds()
        if kind == LEADER:
            labels = (LEADER, "", "")
        elif drone_id in names:
            labels = (COLLECTOR, *names[drone_id])
        else:
            continue
        left.append((labels, seconds))
        held[labels[0]] += seconds > 0
    yield gauge("dronefleet_leases", "Leases that are held.", ("lease",), [((kind,), held[kind]) for kind in held])
    help_ = "Seconds until a lease expires unless it is renewed; negative once it has."
    yield gauge("dronefleet_lease_seconds", help_, ("lease", "organization", "drone"), left)
