"""Messages from people to an order: stored with the order, and sent to each of its runs that has not received them.

Until a model has read a message, it can be taken back (O-042).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.drones import Drone
from control_plane.db.orders import Order, SteeringMessage
from control_plane.db.runs import Run, Step
from control_plane.drones.inbox import notify_drone
from control_plane.orders.conversations.entries import is_left_out
from control_plane.orders.conversations.resumption import path_expected, path_of_next
from control_plane.orders.conversations.review_answers import comments_in_message, make_pending, make_turn_pending
from control_plane.orders.conversations.run_paths import Segment, lacks_steps, path_to, run_that_speaks
from shared.control import Say, TakeBack
from shared.states import OrderStatus

_HAS_A_RUN = (OrderStatus.RUNNING, OrderStatus.AWAITING_APPROVAL)


def has_run(order: Order) -> bool:
    """Whether a run of the order is at work or waits; False for one that was suspended."""
    return order.status in _HAS_A_RUN and order.drone_id is not None


def send_steering(db: Session, core: Core, order: Order, word: SteeringMessage, *, interrupt: bool) -> None:
    """Send a message to the drone that runs the order; wake the supervisor after the commit."""
    assert order.run_id is not None
    assert order.drone_id is not None
    message = Say(
        run_id=order.run_id,
        text=word.text,
        after=word.after,
        interrupt=interrupt,
        review=comments_in_message(db, word.number),
        message=str(word.number),
        alone=word.alone,
    )
    notify_drone(db, core, order.drone_id, message, order.run_id)


def send_along(db: Session, order: Order) -> None:
    """Include all messages to an order in its work order; call when the order is dispatched.

    A run that begins anew knows nothing of the previous run, so it receives that run's messages again. A run that
    resumes from a checkpoint receives only the messages not delivered up to that point.
    """
    own = update(SteeringMessage).where(SteeringMessage.order_id == order.id)
    db.execute(own.values(run_id=order.run_id))
    # No run has them any more: the one that was asked to give them back is over.
    db.execute(own.where(SteeringMessage.take_back_at.is_not(None)).values(taken_back=True))


def words_along(db: Session, run_id: str, path: Sequence[Segment] = ()) -> list[SteeringMessage]:
    """The messages in the work order of this dispatch, whose run continues from the end of `path`."""
    along = select(SteeringMessage).where(SteeringMessage.run_id == run_id, SteeringMessage.take_back_at.is_(None))
    words = list(db.scalars(along.order_by(SteeringMessage.number)))
    return _without_delivered(db, words, path) if words else []


def send_missing_steering(db: Session, core: Core, order: Order) -> bool:
    """Send a run that has just begun the messages written after its order was dispatched, and what of those in its
    order was taken back since; true if there was any.
    """
    words = _words(db, order.id)
    missing = [word for word in words if word.run_id != order.run_id and word.take_back_at is None]
    for word in missing:
        # There is nothing to interrupt yet.
        send_steering(db, core, order, word, interrupt=False)
    revoked = [word for word in words if word.run_id == order.run_id and word.take_back_at is not None]
    _ask_back(db, core, order, [word for word in revoked if not word.taken_back])
    return bool(missing or revoked)


def take_back(db: Session, core: Core, order: Order, words: Sequence[SteeringMessage]) -> None:
    """Take back messages that no model has read: no later run receives them, and a run that has them is asked to drop
    them. It tells which it still had (`note_taken_back`). Wake the supervisor after the commit.

    The review comments in what was taken back are pending again.
    """
    held = [word for word in words if _run_has(order, word)]
    for word in words:
        word.take_back_at = core.clock.now()
        word.taken_back = word not in held
    make_pending(db, [word.number for word in words if word.taken_back])
    if has_run(order):
        _ask_back(db, core, order, held)


def note_taken_back(db: Session, core: Core, order: Order, messages: Sequence[str]) -> None:
    """A run did not give these messages to its model: they were taken back, or an extension withheld them."""
    named = {int(each) for each in messages if each.isascii() and each.isdigit()}
    numbers = [word.number for word in _words(db, order.id) if word.number in named]
    _set_taken_back(db, core, numbers)
    make_pending(db, numbers)


def take_back_unread_reviews(db: Session, core: Core, order: Order) -> None:
    """After the end of the order: what its conversation lacks of reviews is pending again.

    No later run of the order receives it as a message. What the order's own turn has is sent again with it.
    """
    if words := _words(db, order.id):
        left = _without_delivered(db, words, _path_of_turn(db, order))
        _set_taken_back(db, core, make_pending(db, [word.number for word in left]))
    if is_left_out(order) or run_that_speaks(db, order) is None:
        make_turn_pending(db, order)


def _set_taken_back(db: Session, core: Core, numbers: Sequence[int]) -> None:
    named = update(SteeringMessage).where(SteeringMessage.number.in_(numbers))
    first = func.coalesce(SteeringMessage.take_back_at, core.clock.now())
    db.execute(named.values(taken_back=True, take_back_at=first))


def is_being_taken_back(order: Order, word: SteeringMessage) -> bool:
    """Whether its run has yet to say if its model has read the message before it was taken back."""
    return word.take_back_at is not None and not word.taken_back and _run_has(order, word)


def _run_has(order: Order, word: SteeringMessage) -> bool:
    """Whether the message was sent to a run that can still give it to its model."""
    return has_run(order) or (order.status == OrderStatus.ASSIGNED and word.run_id == order.run_id)


def _ask_back(db: Session, core: Core, order: Order, words: Sequence[SteeringMessage]) -> None:
    if words and order.run_id is not None and order.drone_id is not None:
        message = TakeBack(run_id=order.run_id, messages=tuple(str(word.number) for word in words))
        notify_drone(db, core, order.drone_id, message, order.run_id)


def undelivered_steering(db: Session, order: Order) -> list[SteeringMessage]:
    """The messages that the order's current run has not read yet, or did not read before it ended; not those taken
    back.
    """
    return [word for word in unread(db, order) if word.take_back_at is None]


def unread(db: Session, order: Order) -> list[SteeringMessage]:
    """The same with those that are being taken back. None of an order that lacks steps, which show what was read."""
    words = _words(db, order.id)
    if not words:
        return []
    db.flush()
    if lacks_steps(db, order):
        return []
    left = _without_delivered(db, words, _path_now(db, order))
    return [word for word in left if word.take_back_at is None or is_being_taken_back(order, word)]


def _path_now(db: Session, order: Order) -> list[Segment]:
    """The path of the order's run; before the run has spoken, the path that it will continue from."""
    if order.run_id is None:
        return path_expected(db, order) if order.ended_at is None else _path_of_turn(db, order)
    run = db.get(Run, order.run_id)
    if run is not None and (run.resumed_run_id is not None or order.ended_at is not None or _speaks(db, run.id)):
        return path_to(db, run.id)
    drone = db.get(Drone, order.drone_id)
    return [*(path_of_next(db, order, drone) if drone else []), Segment(order.run_id)]


def _path_of_turn(db: Session, order: Order) -> list[Segment]:
    run_id = run_that_speaks(db, order)
    return path_to(db, run_id) if run_id is not None else []


def _speaks(db: Session, run_id: str) -> bool:
    return db.scalar(select(Step.id).where(Step.run_id == run_id, Step.kind == "user").limit(1)) is not None


def _without_delivered(db: Session, words: Sequence[SteeringMessage], path: Sequence[Segment]) -> list[SteeringMessage]:
    """The messages without those that became a step on the path."""
    steps = select(Step.run_id, Step.run_seq, Step.body).where(
        Step.run_id.in_({segment.run_id for segment in path}), Step.kind == "user"
    )
    held = {segment.run_id: segment for segment in path}
    bodies = [body for run_id, seq, body in db.execute(steps) if held[run_id].holds(seq)]
    named = {body["message"] for body in bodies if body.get("message")}
    left = [word for word in words if str(word.number) not in named]
    # An interruption becomes a step without an id; they are delivered in the order in which they were sent.
    nameless = Counter(body.get("source") for body in bodies if not body.get("message"))
    follow_ups = [word for word in left if word.after]
    others = sorted((word for word in left if not word.after), key=lambda word: not word.interrupt)
    left = [*others[nameless["steer"] :], *follow_ups[nameless["follow_up"] :]]
    return sorted(left, key=lambda word: word.number)


def _words(db: Session, order_id: str) -> list[SteeringMessage]:
    return list(
        db.scalars(select(SteeringMessage).where(SteeringMessage.order_id == order_id).order_by(SteeringMessage.number))
    )
