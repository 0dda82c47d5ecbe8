"""Messages that an agent has not read: listed, and taken back, exactly once over runs that are lost and resumed."""

from __future__ import annotations

from control_plane.contract.declarations.steering import SayRequest
from control_plane.db.drones import Drone
from control_plane.operations.orders import message_queue, retrying, steering
from control_plane.operations.orders.canceling import cancel
from control_plane.operations.reviews import commenting
from shared.control import TakeBack
from shared.events import CommentStep, UserStep
from shared.work_order import WorkOrder
from tests.support.going_on import begin, checkpoint, give_back
from tests.support.planes import Plane
from tests.support.refusals import code_of
from tests.support.reviews import comment, send, with_patch
from tests.support.stand_in import DroneStandIn


def say(plane: Plane, order_id: str, text: str, **when: bool) -> None:
    steering.say(plane.core, plane.admin, order_id, SayRequest(text=text, **when))


def waiting(plane: Plane, order_id: str) -> list[tuple[str, str, str]]:
    listed = message_queue.list_(plane.core, plane.admin, order_id)
    return [(each.text, each.when, each.state) for each in listed]


def clear(plane: Plane, order_id: str, text: str | None = None) -> list[str]:
    """Take back the message with this text, or all; their states then."""
    listed = message_queue.list_(plane.core, plane.admin, order_id)
    message = next((each.id for each in listed if each.text == text), None)
    return [each.state for each in message_queue.clear(plane.core, plane.admin, order_id, message)]


def asked_back(drone: DroneStandIn, order: WorkOrder) -> list[TakeBack]:
    return [message.body for message in drone.told("take_back") if message.body.run_id == order.run_id]


def test_before_a_run_begins_a_message_is_taken_back_at_once_or_asked_back_when_it_begins(plane: Plane) -> None:
    order_id = plane.submit()
    say(plane, order_id, "one")
    say(plane, order_id, "two", after=True)
    say(plane, order_id, "three", alone=True)
    queued = [("one", "steer", "queued"), ("two", "follow_up", "queued"), ("three", "steer", "queued")]
    assert waiting(plane, order_id) == queued
    assert clear(plane, order_id, "one") == ["taken_back"]
    assert code_of(lambda: message_queue.clear(plane.core, plane.admin, order_id, "1")) == "E-QUEUE-GONE"
    assert waiting(plane, order_id) == queued[1:]

    oka = plane.drone()
    plane.collector(), plane.supervisor()
    order = oka.taken()
    assert [(word.text, word.alone) for word in order.said] == [("two", False), ("three", True)]
    assert clear(plane, order_id, "two") == ["taking_back"]
    assert asked_back(oka, order) == []
    oka.report(order, oka.started())
    (message,) = plane.until(lambda: asked_back(oka, order))
    assert message.messages == (order.said[0].message,)


def test_a_run_is_asked_for_its_messages_and_says_which_it_still_had(running: Plane, oka: DroneStandIn) -> None:
    order = running.begun(oka)
    say(running, order.order_id, "one")
    say(running, order.order_id, "two")
    assert clear(running, order.order_id) == ["taking_back", "taking_back"]
    (message,) = running.until(lambda: asked_back(oka, order))
    first, second = message.messages
    # The model was faster with the first.
    oka.report(order, UserStep(text="one", source="steer", message=first))
    running.until(lambda: waiting(running, order.order_id) == [("two", "steer", "taking_back")])
    oka.report(order, CommentStep(text="Taken back.", taken_back=(second,)))
    running.until(lambda: waiting(running, order.order_id) == [])


def test_a_review_that_a_run_gives_back_is_pending_again(running: Plane, oka: DroneStandIn) -> None:
    order = running.begun(oka)
    with_patch(running.core, order.order_id)
    comment(running.core, running.admin, order.order_id)
    send(running.core, running.admin, order.order_id)
    clear(running, order.order_id)
    assert status_of_comment(running, order) == "sent"
    (message,) = running.until(lambda: asked_back(oka, order))
    oka.report(order, CommentStep(text="Taken back.", taken_back=message.messages))
    running.until(lambda: status_of_comment(running, order) == "pending")


def status_of_comment(plane: Plane, order: WorkOrder) -> str:
    (listed,) = commenting.list_comments(plane.core, plane.admin, order.order_id)
    return listed.status


def test_a_run_after_a_lost_one_does_not_hear_what_was_taken_back_and_all_else_once(
    running: Plane, oka: DroneStandIn
) -> None:
    first = running.begun(oka)
    for text in ("one", "two", "three"):
        say(running, first.order_id, text)
    clear(running, first.order_id, "two")
    give_back(oka, first)
    second = oka.taken()
    assert [word.text for word in second.said] == ["one", "three"]
    oka.report(second, oka.started())
    running.reaches(first.order_id, "running")
    assert [message.body for message in oka.told("say") if message.body.run_id == second.run_id] == []
    assert waiting(running, first.order_id) == [("one", "steer", "queued"), ("three", "steer", "queued")]


def test_while_an_order_is_queued_again_what_its_agent_has_read_does_not_wait(
    running: Plane, oka: DroneStandIn
) -> None:
    order = begin(running, oka)
    order_id = order.order_id
    running.reaches(order_id, "running")
    say(running, order_id, "one")
    (read,) = running.until(lambda: oka.told("say"))
    oka.report(order, UserStep(text="one", source="steer", message=read.body.message))
    oka.report(order, checkpoint("one", commit="", bundle_sha256=None))
    say(running, order_id, "two")
    running.edit(Drone, oka.id, draining=True)
    give_back(oka, order)
    running.reaches(order_id, "queued")
    left = [("two", "steer", "queued")]
    assert waiting(running, order_id) == left
    cancel(running.core, running.admin, order_id)
    assert waiting(running, order_id) == left
    # A run that begins anew has read nothing.
    retrying.retry(running.core, running.admin, order_id)
    assert waiting(running, order_id) == [("one", "steer", "queued"), *left]
