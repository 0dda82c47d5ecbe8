"""The drones of a pool: which of them are there, and which are gone for good."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.db.drones import Drone
from shared.states import OFFLINE_AFTER

GONE_AFTER = timedelta(minutes=10)
"""An ephemeral drone that was offline for this long does not come back. One that registered has this long to start."""


def is_there(drone: Drone, now: datetime) -> bool:
    """Whether it counts as one of its pool's drones: it is online or silent for a moment, or it is starting."""
    if drone.removed_at is not None or drone.stopped_at is not None:
        return False
    if drone.last_seen_at is None:
        return now - drone.registered_at < GONE_AFTER
    return now - drone.last_seen_at < OFFLINE_AFTER


def is_gone(drone: Drone, now: datetime) -> bool:
    """Whether it was offline for so long that it does not come back."""
    since = drone.stopped_at or drone.last_seen_at or drone.registered_at
    return not is_there(drone, now) and now - since >= GONE_AFTER


def members_of(db: Session, pool_ids: Collection[str]) -> defaultdict[str, list[Drone]]:
    """The drones of each pool that are not removed, by the pool's id."""
    found: defaultdict[str, list[Drone]] = defaultdict(list)
    rows = select(Drone).where(Drone.pool_id.in_(pool_ids), Drone.removed_at.is_(None)).order_by(Drone.registered_at)
    for drone in db.scalars(rows):
        found[str(drone.pool_id)].append(drone)
    return found
