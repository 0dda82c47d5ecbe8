"""Messages from people to an order: stored with the order, and sent to each of its runs that has not received them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from control_plane.conversations.resumption import path_of_next
from control_plane.conversations.run_paths import Segment, path_to
from control_plane.core import Core
from control_plane.db.drones import Drone
from control_plane.db.orders import Order, SteeringMessage
from control_plane.db.runs import Run, Step
from control_plane.drones.inbox import notify_drone
from shared.control import Say


def send_steering(db: Session, core: Core, order: Order, word: SteeringMessage, *, interrupt: bool) -> None:
    """Send a message to the drone that runs the order; wake the supervisor after the commit."""
    assert order.run_id is not None
    assert order.drone_id is not None
    message = Say(run_id=order.run_id, text=word.text, after=word.after, interrupt=interrupt)
    notify_drone(db, core, order.drone_id, message, order.run_id)


def send_along(db: Session, order: Order) -> None:
    """Include all messages to an order in its work order; call when the order is dispatched.

    A run that begins anew knows nothing of the previous run, so it receives that run's messages again. A run that
    resumes from a checkpoint receives only the messages not delivered up to that point.
    """
    db.execute(update(SteeringMessage).where(SteeringMessage.order_id == order.id).values(run_id=order.run_id))


def words_along(db: Session, run_id: str, path: Sequence[Segment] = ()) -> list[SteeringMessage]:
    """The messages in the work order of this dispatch, whose run continues from the end of `path`."""
    words = list(
        db.scalars(select(SteeringMessage).where(SteeringMessage.run_id == run_id).order_by(SteeringMessage.number))
    )
    return _without_delivered(db, words, path) if words else []


def send_missing_steering(db: Session, core: Core, order: Order) -> bool:
    """Send a run that has just begun the messages written after its order was dispatched; true if there were any."""
    missing = [word for word in _words(db, order.id) if word.run_id != order.run_id]
    for word in missing:
        # There is nothing to interrupt yet.
        send_steering(db, core, order, word, interrupt=False)
    return bool(missing)


def undelivered_steering(db: Session, order: Order) -> list[SteeringMessage]:
    """The messages that the order's current run has not read yet, or did not read before it ended."""
    words = _words(db, order.id)
    if not words:
        return []
    db.flush()
    return _without_delivered(db, words, _path_now(db, order))


def _path_now(db: Session, order: Order) -> list[Segment]:
    """The path of the order's run; before the run has spoken, the path that it will continue from."""
    if order.run_id is None:
        return []
    run = db.get(Run, order.run_id)
    if run is not None and (run.resumed_run_id is not None or order.ended_at is not None or _speaks(db, run.id)):
        return path_to(db, run.id)
    drone = db.get(Drone, order.drone_id)
    return [*(path_of_next(db, order, drone) if drone else []), Segment(order.run_id)]


def _speaks(db: Session, run_id: str) -> bool:
    return db.scalar(select(Step.id).where(Step.run_id == run_id, Step.kind == "user").limit(1)) is not None


def _without_delivered(db: Session, words: Sequence[SteeringMessage], path: Sequence[Segment]) -> list[SteeringMessage]:
    """The messages without those that became a step on the path."""
    steps = select(Step.run_id, Step.run_seq, Step.body).where(
        Step.run_id.in_({segment.run_id for segment in path}), Step.kind == "user"
    )
    held = {segment.run_id: segment for segment in path}
    # Each message becomes one step, and messages of one kind are delivered in the order in which they were sent.
    delivered = Counter(body.get("source") for run_id, seq, body in db.execute(steps) if held[run_id].holds(seq))
    follow_ups = [word for word in words if word.after]
    others = [word for word in words if not word.after]
    left = [*others[delivered["steer"] :], *follow_ups[delivered["follow_up"] :]]
    return sorted(left, key=lambda word: word.number)


def _words(db: Session, order_id: str) -> list[SteeringMessage]:
    return list(
        db.scalars(select(SteeringMessage).where(SteeringMessage.order_id == order_id).order_by(SteeringMessage.number))
    )
