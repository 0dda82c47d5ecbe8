"""An order's way to a drone, back into the queue, and to its end; each inside the caller's transaction.

The row is the truth: whatever must happen outside (a queue, a key, word to followers) happens after the commit and
can be done again from the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from control_plane.conversations.entries import locked, turn_ended
from control_plane.conversations.resumption import expected_resumption, resumption_on
from control_plane.conversations.steering_messages import send_along
from control_plane.core import Core
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order, Turn
from control_plane.drones.load import load_by_drone, why_not_starting
from control_plane.orders import totals
from control_plane.orders.placement import Placement, earlier_in_session, place
from control_plane.orders.transitions import explain, move_order, move_turn
from shared.errors import Conflict
from shared.events import Receipt
from shared.names import new_id
from shared.outcome import ExitStatus
from shared.reasons import CanceledEnd, Ended, InQueue, OrderFacts, Resumption, Returned, RunEnd, RunFailed, TakenBack
from shared.states import OrderStatus, TurnStatus

_TURN_OF = {
    OrderStatus.SUCCEEDED: TurnStatus.FINISHED,
    OrderStatus.FAILED: TurnStatus.ERROR,
    OrderStatus.CANCELED: TurnStatus.ABORTED,
}


@dataclass(frozen=True)
class Ending:
    """How an order ended."""

    exit_status: ExitStatus | str
    because: Ended
    response: str | None = None
    receipt: dict[str, Any] | None = None


def dispatch(db: Session, core: Core, order: Order, placement: Placement) -> Dispatch:
    """Assign a queued order to a drone: generation + 1, and an outbox row, which the relay publishes.

    Raises Conflict where the order is not queued any more, or an earlier one of its session came back meanwhile.
    """
    # Under the session's lock, which an order that comes back into the queue takes too: one of a session at a time.
    locked(db, order.session_id)
    if earlier := earlier_in_session(db, order):
        raise Conflict(f"order {order.id} waits for order {earlier} of the same session", code="E-ORDER-STATE")
    drone = placement.drone
    made = Dispatch(
        id=new_id(),
        organization_id=order.organization_id,
        order_id=order.id,
        drone_id=drone.id,
        generation=order.generation + 1,
        created_at=core.clock.now(),
    )
    db.add(made)
    where = {"drone_id": drone.id, "run_id": made.id, "generation": made.generation}
    move_order(db, order, OrderStatus.ASSIGNED, _placed(db, core, order, placement), **where)
    send_along(db, order)
    return made


def _placed(db: Session, core: Core, order: Order, placement: Placement) -> OrderFacts:
    before = order.facts.returned
    returned = before if isinstance(before, TakenBack) else None
    resumes = resumption_on(db, order, placement.drone)
    if returned and returned.resumes and resumes and _same_place(returned.resumes, resumes):
        # It was said when the order came back.
        resumes = None
    placed = placement.because.model_copy(update={"resumes": resumes})
    return OrderFacts(returned=returned, placed=placed, waits=waits_in_queue(db, core, placement.drone))


def _same_place(one: Resumption, other: Resumption) -> bool:
    return (one.step, one.why_not) == (other.step, other.why_not)


def place_and_dispatch(db: Session, core: Core, order: Order, *, may_go: bool = True) -> Dispatch | None:
    """Dispatch a queued order if a drone takes it, unless it may not go yet; else write on it why none does."""
    found = place(db, core, order)
    if isinstance(found, Placement):
        return dispatch(db, core, order, found) if may_go else None
    if found != order.facts.waits:
        explain(db, order, OrderFacts(waits=found))
    return None


def waits_in_queue(db: Session, core: Core, drone: Drone) -> InQueue | None:
    """Why the drone does not start the orders in its queue now; None if it does."""
    state = why_not_starting(drone, load_by_drone(db)[drone.id], core.clock.now())
    return InQueue(state=state) if state is not None else None


def requeue(db: Session, core: Core, order: Order, returned: Returned) -> None:
    """Give an order back to the queue; its dispatch is over, and whatever still comes from it is late.

    Where the order had been worked on, the facts tell where that will continue. Raises Conflict where no drone has the
    order.
    """
    _close(db, core, order)
    returned = returned.model_copy(update={"resumes": expected_resumption(db, order)})
    move_order(
        db, order, OrderStatus.QUEUED, OrderFacts(returned=returned), drone_id=None, run_id=None, grant_until=None
    )


def try_again(db: Session, core: Core, order: Order, ending: Ending) -> None:
    """A run ended by the fleet's fault: requeue its order; after `max_attempts` such runs fail it as `ending` says."""
    ended = ending.because
    assert isinstance(ended, RunEnd)
    count = order.lost_runs + 1
    order.lost_runs = count
    if count >= order.max_attempts:
        last = ended.model_copy(update={"attempts": order.max_attempts})
        finish(db, core, order, OrderStatus.FAILED, Ending(ending.exit_status, last, ending.response))
        return
    failed = RunFailed(detail=ended.detail, loss=ended.loss, attempt=count, attempts=order.max_attempts)
    requeue(db, core, order, failed)


def finish(db: Session, core: Core, order: Order, to: OrderStatus, ending: Ending) -> None:
    """End an order and its turn, and let the subscribers act on that. Every end of an order comes here.

    Raises Conflict where the order cannot end so from where it is.
    """
    _close(db, core, order)
    because = OrderFacts(cancel=order.facts.cancel, ended=_ended(order, ending))
    if order.status == OrderStatus.AWAITING_APPROVAL and to is OrderStatus.SUCCEEDED:
        move_order(db, order, OrderStatus.RUNNING)
    now = core.clock.now()
    move_order(
        db,
        order,
        to,
        because,
        exit_status=str(ending.exit_status),
        response=ending.response if ending.response is not None else order.response,
        receipt=ending.receipt,
        ended_at=now,
        grant_until=None,
    )
    turn = db.scalar(select(Turn).where(Turn.order_id == order.id))
    if turn is not None:
        stats = totals.of_order(db, order.id).model_dump(mode="json")
        move_turn(db, turn, _TURN_OF[to], response=order.response, stats=stats, ended_at=now)
        turn_ended(db, core, order)
    for subscriber in core.subscribers.order_ended:
        subscriber(db, core, order)


def _ended(order: Order, ending: Ending) -> Ended:
    if isinstance(ending.because, CanceledEnd) and order.facts.cancel is None:
        # An older process recorded who asked, as a text alone.
        return ending.because.model_copy(update={"earlier": order.reason_written})
    return ending.because


def canceled(because: CanceledEnd, receipt: Receipt, response: str | None = None) -> Ending:
    """The end of an order that a person canceled, with the drone's receipt or one in its place."""
    return Ending(ExitStatus.CANCELED, because, response, receipt.model_dump(mode="json"))


def _close(db: Session, core: Core, order: Order) -> None:
    if order.run_id is not None:
        open_one = update(Dispatch).where(Dispatch.id == order.run_id, Dispatch.closed_at.is_(None))
        db.execute(open_one.values(closed_at=core.clock.now()))
