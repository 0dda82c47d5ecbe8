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
from control_plane.conversations.resumption import outlook, where_on
from control_plane.conversations.steering_messages import send_along
from control_plane.core import Core
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order, Turn
from control_plane.drones.load import load_by_drone, standing
from control_plane.orders import totals
from control_plane.orders.placement import earlier_in_session, place
from control_plane.orders.transitions import move_order, move_turn
from shared.errors import Conflict
from shared.names import new_id
from shared.outcome import ExitStatus
from shared.states import OrderStatus, TurnStatus

_WAITS = "; waits in "
"""Parts the reason of an assigned order: before it why this drone, behind it why not yet."""
_TAKEN_BACK = "taken back from "
"""Begins the reason of an order that left a drone's queue; it stays in front of why the next drone was chosen."""
_CANCEL_ASKED = "cancel asked for "
_RECEIPT_MISSING = "; waits for the drone's receipt"
_TURN_OF = {
    OrderStatus.SUCCEEDED: TurnStatus.FINISHED,
    OrderStatus.FAILED: TurnStatus.ERROR,
    OrderStatus.CANCELED: TurnStatus.ABORTED,
}


@dataclass(frozen=True)
class Ending:
    """How an order ended. `reason` is one sentence for people."""

    exit_status: ExitStatus | str
    reason: str
    response: str | None = None
    receipt: dict[str, Any] | None = None


def dispatch(db: Session, core: Core, order: Order, drone: Drone, reason: str) -> Dispatch:
    """Assign a queued order to `drone`: generation + 1, and an outbox row, which the relay publishes.

    Raises Conflict where the order is not queued any more, or an earlier one of its session came back meanwhile.
    """
    # Under the session's lock, which an order that comes back into the queue takes too: one of a session at a time.
    locked(db, order.session_id)
    if earlier := earlier_in_session(db, order):
        raise Conflict(f"order {order.id} waits for order {earlier} of the same session", code="E-ORDER-STATE")
    made = Dispatch(
        id=new_id(),
        organization_id=order.organization_id,
        order_id=order.id,
        drone_id=drone.id,
        generation=order.generation + 1,
        created_at=core.clock.now(),
    )
    db.add(made)
    if (where := where_on(db, order, drone)) and where not in reason:
        reason = f"{reason}; {where}"
    waits = waiting_reason(db, core, drone, reason)
    move_order(
        db,
        order,
        OrderStatus.ASSIGNED,
        drone_id=drone.id,
        run_id=made.id,
        generation=made.generation,
        reason=waits,
    )
    send_along(db, order)
    return made


def place_and_dispatch(db: Session, core: Core, order: Order, *, may_go: bool = True) -> Dispatch | None:
    """Dispatch a queued order if a drone takes it, unless it may not go yet; else write on it why none does."""
    placement = place(db, core, order)
    if placement.drone is not None and not may_go:
        return None
    if placement.drone is None:
        if order.reason != placement.reason:
            order.reason = placement.reason
        return None
    why = f"{order.reason}; {placement.reason}" if order.reason.startswith(_TAKEN_BACK) else placement.reason
    return dispatch(db, core, order, placement.drone, why)


def taken_back_reason(drone: Drone, why: str) -> str:
    """What an order says that left a drone's queue without having begun; `why` goes on from "the drone"."""
    return f"{_TAKEN_BACK}{drone.name}: the drone {why}"


def waiting_reason(db: Session, core: Core, drone: Drone, reason: str) -> str:
    """`reason`, and behind it why the drone does not start the order yet, as it is now."""
    why = standing(drone, load_by_drone(db)[drone.id], core.clock.now())
    return settled_reason(reason) + (f"{_WAITS}{drone.name}'s queue: the drone {why}" if why else "")


def settled_reason(reason: str) -> str:
    """Why the drone was chosen, without why the order had to wait there."""
    return reason.partition(_WAITS)[0]


def canceling_reason(asked: str) -> str:
    """What an order says while its drone ends it; `asked` tells who asked for that, and why."""
    return f"{_CANCEL_ASKED}{asked}{_RECEIPT_MISSING}"


def who_canceled(reason: str) -> str:
    """The `asked` in the reason of an order that is being canceled."""
    return reason.removeprefix(_CANCEL_ASKED).removesuffix(_RECEIPT_MISSING)


def requeue(db: Session, core: Core, order: Order, reason: str) -> None:
    """Give an order back to the queue; its dispatch is over, and whatever still comes from it is late.

    `reason` is for people; where the order had been worked on, it also says where that goes on.

    Raises Conflict where the order is in no drone's hand.
    """
    _close(db, core, order)
    if where := outlook(db, order):
        reason = f"{reason}; {where}"
    move_order(
        db,
        order,
        OrderStatus.QUEUED,
        drone_id=None,
        run_id=None,
        grant_until=None,
        reason=reason,
    )


def try_again(db: Session, core: Core, order: Order, ending: Ending) -> None:
    """A run ended by the fleet's fault: requeue its order; after `max_attempts` such runs fail it as `ending` says."""
    count = order.lost_runs + 1
    order.lost_runs = count
    if count >= order.max_attempts:
        reason = f"{ending.reason}; that was the last of {order.max_attempts} attempts"
        finish(db, core, order, OrderStatus.FAILED, Ending(ending.exit_status, reason, ending.response))
        return
    requeue(db, core, order, f"{ending.reason}; queued again (attempt {count} of {order.max_attempts} ended so)")


def finish(db: Session, core: Core, order: Order, to: OrderStatus, ending: Ending) -> None:
    """End an order and its turn. Raises Conflict where the order cannot end so from where it is."""
    _close(db, core, order)
    if order.status == OrderStatus.AWAITING_APPROVAL and to is OrderStatus.SUCCEEDED:
        move_order(db, order, OrderStatus.RUNNING)
    now = core.clock.now()
    move_order(
        db,
        order,
        to,
        exit_status=str(ending.exit_status),
        reason=ending.reason,
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


def _close(db: Session, core: Core, order: Order) -> None:
    if order.run_id is not None:
        open_one = update(Dispatch).where(Dispatch.id == order.run_id, Dispatch.closed_at.is_(None))
        db.execute(open_one.values(closed_at=core.clock.now()))
