"""What the newest orders say about drones: since when each has been idle, and how long an order usually takes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from sqlalchemy import select

from control_plane.core import Caller, Core
from control_plane.db.orders import Order

NEWEST = 1000
"""Orders that are looked at, so that a long history costs no more."""
FEWEST = 3
"""Orders without which it is unknown how long the next one takes."""


@dataclass(frozen=True)
class RecentWork:
    """Of one drone."""

    ended_at: datetime
    usual_s: float | None
    """How long an order takes from its start to its end, waits included; None: unknown."""


def recent_work(core: Core, caller: Caller) -> dict[str, RecentWork]:
    """By the drone's id. A drone is absent if it ended none of the organization's newest orders."""
    newest = select(Order.drone_id, Order.started_at, Order.ended_at, Order.purpose)
    newest = newest.where(Order.organization_id == caller.organization_id).order_by(Order.number.desc()).limit(NEWEST)
    ended: defaultdict[str, list[datetime]] = defaultdict(list)
    took: defaultdict[str, list[float]] = defaultdict(list)
    with core.database.read() as db:
        for drone_id, began, end, purpose in db.execute(newest):
            if drone_id is None or began is None or end is None:
                continue
            ended[drone_id].append(end)
            if purpose == "work":
                took[drone_id].append((end - began).total_seconds())
    return {
        drone_id: RecentWork(max(ends), median(took[drone_id]) if len(took[drone_id]) >= FEWEST else None)
        for drone_id, ends in ended.items()
    }
