"""Ending and requeuing an order, each inside the caller's transaction.

Every order ends in `finish`, which notifies the subscribers in the same transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.core.audit_entries import note_order
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order, Turn
from control_plane.db.runs import Run
from control_plane.orders import totals
from control_plane.orders.conversations.entries import turn_ended
from control_plane.orders.conversations.resumption import expected_resumption
from control_plane.orders.conversations.steering_messages import take_back_unread_reviews
from control_plane.orders.drone_refusals import refused_by_policy, unsuitable_drones
from control_plane.orders.follow_up import follow_up_of
from control_plane.orders.placement import another_drone
from control_plane.orders.status_changes import move_order, move_turn
from shared.events import Receipt
from shared.outcome import ExitStatus
from shared.reasons import (
    AttemptFailed,
    CanceledEnd,
    Ended,
    FailedOnDrone,
    OrderFacts,
    RefusedByDrone,
    Returned,
    RunEnd,
)
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


def requeue(db: Session, core: Core, order: Order, returned: Returned) -> None:
    """Requeue an order; its dispatch is closed, and all further events from it are late.

    If work on the order had begun, the facts record where it will continue. Raises Conflict if no drone has the order.
    """
    _close(db, core, order)
    returned = returned.model_copy(update={"resumes": expected_resumption(db, order)})
    move_order(
        db, order, OrderStatus.QUEUED, OrderFacts(returned=returned), drone_id=None, run_id=None, grant_until=None
    )
    note_order(db, core, order, "order_requeued")


def try_again(db: Session, core: Core, order: Order, ending: Ending) -> None:
    """Requeue an order whose run failed by the fleet's fault; after `max_attempts` of them, fail it with `ending`.

    A refusal by the policy of a drone's owner is no attempt: the order waits for another drone.
    """
    ended = ending.because
    assert isinstance(ended, RunEnd)
    run = db.get(Run, order.run_id) if order.run_id is not None else None
    if run is not None and refused_by_policy(db, run):
        drone = db.get_one(Drone, run.drone_id)
        requeue(db, core, order, RefusedByDrone(drone=drone.name, detail=ended.detail))
        return
    count = order.lost_runs + 1
    order.lost_runs = count
    if count >= order.max_attempts:
        last = ended.model_copy(update={"attempts": order.max_attempts})
        finish(db, core, order, OrderStatus.FAILED, Ending(ending.exit_status, last, ending.response))
        return
    failed = AttemptFailed(detail=ended.detail, loss=ended.loss, attempt=count, attempts=order.max_attempts)
    requeue(db, core, order, failed)


def try_elsewhere(db: Session, core: Core, order: Order, drone: Drone, ending: Ending) -> bool:
    """Requeue an order for another drone, because it would fail again on this one.

    False, with nothing changed, if no other drone takes it now: waiting would not help.
    """
    ended = ending.because
    assert isinstance(ended, RunEnd)
    if not another_drone(db, core, order):
        return False
    requeue(db, core, order, FailedOnDrone(drone=drone.name, detail=ended.detail))
    return True


def after_all_drones(db: Session, order: Order, ending: Ending) -> Ending:
    """The end of an order that failed on every drone that takes it; it names their number if there were several."""
    ended, tried = ending.because, len(unsuitable_drones(db, order))
    assert isinstance(ended, RunEnd)
    return replace(ending, because=ended.model_copy(update={"drones": tried})) if tried > 1 else ending


def finish(db: Session, core: Core, order: Order, to: OrderStatus, ending: Ending) -> None:
    """End an order and its turn, and notify the subscribers. Every order ends here.

    Raises Conflict if the order cannot move from its status to `to`.
    """
    _close(db, core, order)
    because = OrderFacts(cancel=order.facts.cancel, ended=ending.because)
    if order.status == OrderStatus.AWAITING_APPROVAL and to is OrderStatus.SUCCEEDED:
        move_order(db, order, OrderStatus.RUNNING)
    now = core.clock.now()
    response = ending.response if ending.response is not None else order.response
    move_order(
        db,
        order,
        to,
        because,
        exit_status=str(ending.exit_status),
        response=response,
        follow_up=follow_up_of(order, to, str(ending.exit_status), response),
        receipt=ending.receipt,
        ended_at=now,
        grant_until=None,
    )
    turn = db.scalar(select(Turn).where(Turn.order_id == order.id))
    if turn is not None:
        stats = totals.of_order(db, order.id).model_dump(mode="json")
        move_turn(db, turn, _TURN_OF[to], response=order.response, stats=stats, ended_at=now)
        turn_ended(db, core, order)
        take_back_unread_reviews(db, core, order)
    note_order(db, core, order, f"order_{to}")
    for subscriber in core.subscribers.order_ended:
        subscriber(db, core, order)


def canceled(because: CanceledEnd, receipt: Receipt, response: str | None = None) -> Ending:
    """The end of an order that a person canceled, with the drone's receipt or a substitute."""
    return Ending(ExitStatus.CANCELED, because, response, receipt.model_dump(mode="json"))


def _close(db: Session, core: Core, order: Order) -> None:
    if order.run_id is not None:
        open_one = update(Dispatch).where(Dispatch.id == order.run_id, Dispatch.closed_at.is_(None))
        db.execute(open_one.values(closed_at=core.clock.now()))
