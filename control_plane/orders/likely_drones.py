"""The drones worth scoring for an order, sorted and limited by the database.

To read and score every drone for each order takes longer than all else of its placement, from some hundred drones on.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import String, cast, func, or_, select
from sqlalchemy.orm import Session

from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.drones.load import TAKEN
from shared.states import UNRESPONSIVE_AFTER

ENOUGH = 64
"""How many drones are scored for an order; in a fleet of no more, all that take work."""


def likely_drones(db: Session, order: Order, now: datetime, first: str | None) -> Sequence[Drone]:
    """At most `ENOUGH` drones that take work, as they are preferred: the drone `first`, then a drone with a free slot,
    with the repository, with the smallest load.

    What the database cannot tell is left to the caller: labels, abilities, whether a drone that serves other
    organizations serves this one, and what only its last beat says.
    """
    taken = select(Order.drone_id, func.count().label("orders"))
    taken_by = taken.where(Order.ended_at.is_(None), Order.status.in_(TAKEN)).group_by(Order.drone_id).subquery()
    outstanding = func.coalesce(taken_by.c.orders, 0)
    on_it = Order.project_id == order.project_id, Order.drone_id == Drone.id, Order.started_at.is_not(None)
    has_mirror = select(Order.id).where(*on_it).exists()
    preferred = (
        Drone.id != (first or ""),
        outstanding >= Drone.concurrency,
        has_mirror.desc(),
        1.0 * outstanding / Drone.concurrency,
        Drone.name,
    )
    taking_work = (
        Drone.removed_at.is_(None),
        Drone.stopped_at.is_(None),
        Drone.last_seen_at > now - UNRESPONSIVE_AFTER,
        Drone.draining.is_(False),
        Drone.over_quota_at.is_(None),
        or_(Drone.organization_id == order.organization_id, cast(Drone.serves, String) != "[]"),
    )
    with_load = select(Drone).outerjoin(taken_by, taken_by.c.drone_id == Drone.id)
    return db.scalars(with_load.where(*taking_work).order_by(*preferred).limit(ENOUGH)).all()
