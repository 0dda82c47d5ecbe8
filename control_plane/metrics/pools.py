"""Figures of pools, which an autoscaler follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from prometheus_client.core import Metric
from sqlalchemy.orm import Session

from control_plane.metrics.families import gauge
from control_plane.orders.pools import pool_needs, pools_of

LABELS = ("organization", "pool")


def pool_metrics(db: Session, names: Mapping[str, str], now: datetime) -> Iterator[Metric]:
    """`names`: of the organizations, by id."""
    needs = [((names[each.pool.organization_id], each.pool.name), each) for each in pool_needs(db, now, pools_of(db))]
    wanted = [(labels, need.wanted) for labels, need in needs]
    yield gauge("dronefleet_pool_wanted", "Drones that the pool should have now.", LABELS, wanted)
    waiting = [(labels, need.waiting) for labels, need in needs]
    yield gauge("dronefleet_pool_waiting", "Orders that wait for a drone of the pool.", LABELS, waiting)
    drones = [(labels, need.drones) for labels, need in needs]
    yield gauge("dronefleet_pool_drones", "Present drones of the pool.", LABELS, drones)
