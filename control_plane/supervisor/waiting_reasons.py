"""Keeps the reason why an order waits in a drone's queue true as the drone leaves, comes back or fills up."""

from __future__ import annotations

from sqlalchemy import select

from control_plane.core import Core
from control_plane.core.rows import each_alone
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order
from control_plane.drones.load import Load, load_by_drone
from control_plane.orders.assignment import waits_in_queue
from control_plane.orders.status_changes import explain
from shared.reasons import CannotBeSent, OrderFacts
from shared.states import OrderStatus


def refresh_reasons(core: Core) -> list[str]:
    """Correct outdated reasons; returns the ids of the corrected orders."""
    assigned = Order.ended_at.is_(None), Order.status == OrderStatus.ASSIGNED
    waiting = (
        select(Order, Drone, Dispatch)
        .join(Drone, Drone.id == Order.drone_id)
        .join(Dispatch, Dispatch.id == Order.run_id)
        .where(*assigned)
    )
    with core.database.read() as db:
        rows = db.execute(waiting).all()
        if not rows:
            return []
        # Once for all: it counts the orders of the whole fleet.
        load = load_by_drone(db)
        found = each_alone("reasons", rows, lambda row: (row[0], _facts_now(core, *row, load[row[1].id])))
    stale = [(order, facts) for order, facts in found if facts != order.facts]
    if not stale:
        return []
    with core.database.write() as db:
        for order, facts in stale:
            # Only while it still waits in that queue: an order that moved meanwhile has its own facts.
            explain(db, order, facts)
    changed = [order.id for order, _ in stale]
    core.broker.changed_by_supervisor(changed)
    return changed


def _facts_now(core: Core, order: Order, drone: Drone, sent: Dispatch, load: Load) -> OrderFacts:
    facts = order.facts
    unsent = isinstance(facts.waits, CannotBeSent) and sent.published_at is None
    if unsent:
        return facts
    return facts.model_copy(update={"waits": waits_in_queue(core, drone, load)})
