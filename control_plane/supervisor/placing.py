"""Places queued orders on drones, urgent ones first, then in order of submission, and says why the others wait.

An order that has just failed through the fleet's fault pauses first: a temporary outage would fail it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import takewhile

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.core.background.timings import PAUSES
from control_plane.core.rows import each_alone
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run
from control_plane.drones.condition import Load, load_by_drone
from control_plane.orders.assignment import place_and_dispatch, waits_in_queue
from control_plane.orders.placement import Placement, place
from control_plane.orders.status_changes import explain
from shared.errors import Conflict, Unreachable
from shared.reasons import CannotBeSent, OrderFacts, PausesAfterFailure, Waits
from shared.states import OrderStatus, RunStatus
from shared.terminal import logs

log = logs.get(__name__)


def place_queued(core: Core, pauses: Sequence[float] = PAUSES) -> int:
    """Dispatch every queued order that a drone takes; record on the others why none does. Returns the dispatch count.

    `pauses` are the seconds before an order is retried after its first, second, … failure in a row.
    """
    count = 0
    for order_id, found in _movable(core, pauses):
        try:
            with core.database.write() as db:
                order = db.get_one(Order, order_id, with_for_update=True)
                queued = order.status == OrderStatus.QUEUED
                went = queued and _place_one(db, core, order, pauses, found)
        except Conflict:
            # Canceled, or placed by another process, since the read.
            continue
        core.broker.changed_by_supervisor([order_id])
        count += went
    return count


def _place_one(db: Session, core: Core, order: Order, pauses: Sequence[float], found: Placement | Waits) -> bool:
    """True if the order went to a drone."""
    waits = found if isinstance(found, CannotBeSent) else _pause(db, core, order, pauses)
    if isinstance(found, CannotBeSent):
        log.error("an order cannot be placed", order=order.id, why=found.detail)
    if waits:
        explain(db, order, OrderFacts(waits=waits))
        return False
    return place_and_dispatch(db, core, order, may_go=isinstance(found, Placement)) is not None


def _movable(core: Core, pauses: Sequence[float]) -> Sequence[tuple[str, Placement | Waits]]:
    """Queued orders whose placement or reason would change, with what was found; the others cost no write.

    An order for which a drone becomes available only during the round waits for the next one: a more urgent order may
    have been checked just before, and must not be overtaken.
    """
    queued = select(Order).where(Order.ended_at.is_(None), Order.status == OrderStatus.QUEUED)
    with core.database.read() as db:
        orders = db.scalars(queued.order_by(Order.priority.desc(), Order.number)).all()
        placements = [(order, _placement(db, core, order, pauses)) for order in orders]
        return [
            (order.id, found)
            for order, found in placements
            if isinstance(found, Placement) or found != order.facts.waits
        ]


def _placement(db: Session, core: Core, order: Order, pauses: Sequence[float]) -> Placement | Waits:
    """Where the order goes, or why it waits. What the rows of one order hold must not hold up all others."""
    try:
        return _pause(db, core, order, pauses) or place(db, core, order)
    except (Unreachable, SQLAlchemyError):
        raise
    except Exception as error:  # noqa: BLE001 - see above
        return CannotBeSent(detail=f"it cannot be placed ({type(error).__name__})")


def _pause(db: Session, core: Core, order: Order, pauses: Sequence[float]) -> PausesAfterFailure | None:
    """Until when the order is not retried, and why; None if it may be tried now."""
    if order.lost_runs == 0 or not pauses:
        return None
    # A user who retried the order does not want it to wait.
    since = max(order.fresh_generation, order.renewed_generation)
    latest = select(Run).where(Run.order_id == order.id, Run.generation > since)
    runs = db.scalars(latest.order_by(Run.generation.desc()).limit(len(pauses))).all()
    # A run that made progress had all that it needs: its order is retried immediately. So is one whose drone was lost.
    in_a_row = len(list(takewhile(_never_got_to_work, runs)))
    if not in_a_row or runs[0].ended_at is None:
        return None
    until = runs[0].ended_at + timedelta(seconds=pauses[in_a_row - 1])
    if core.clock.now() >= until:
        return None
    return PausesAfterFailure(until=until, attempt=order.lost_runs, attempts=order.max_attempts, detail=runs[0].reason)


def _never_got_to_work(run: Run) -> bool:
    return run.status == RunStatus.FAILED and run.output_tokens == 0 and run.tool_calls == 0


# --- orders in a drone's queue --------------------------------------------------------------------


def refresh_reasons(core: Core) -> list[str]:
    """Correct the reasons why orders wait in a drone's queue as the drone leaves, comes back or fills up.

    Returns the ids of the corrected orders.
    """
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
