"""Messages that an agent has not read: listed, and taken back, exactly once over runs that are lost and resumed."""

from __future__ import annotations

import pytest

from control_plane.operations.orders import message_queue
from shared.control import TakeBack
from shared.errors import Conflict
from shared.events import CommentStep, UserStep
from shared.work_order import WorkOrder
from tests.integration.operations.test_steering import claimed, heard, running, say
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn


@pytest.fixture
def oka(plane: Plane) -> DroneStandIn:
    made = plane.drone()
    plane.collector(), plane.supervisor()
    return made


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
    with pytest.raises(Conflict):
        message_queue.clear(plane.core, plane.admin, order_id, "1")
    assert waiting(plane, order_id) == queued[1:]

    oka = plane.drone()
    plane.collector(), plane.supervisor()
    order = claimed(plane, oka)
    assert [(word.text, word.alone) for word in order.said] == [("two", False), ("three", True)]
    assert clear(plane, order_id, "two") == ["taking_back"]
    assert asked_back(oka, order) == []
    oka.report(order, oka.started())
    (message,) = plane.until(lambda: asked_back(oka, order))
    assert message.messages == (order.said[0].message,)


def test_a_run_is_asked_for_its_messages_and_says_which_it_still_had(plane: Plane, oka: DroneStandIn) -> None:
    order = running(plane, oka)
    say(plane, order.order_id, "one")
    say(plane, order.order_id, "two")
    assert clear(plane, order.order_id) == ["taking_back", "taking_back"]
    (message,) = plane.until(lambda: asked_back(oka, order))
    first, second = message.messages
    # The model was faster with the first.
    oka.report(order, UserStep(text="one", source="steer", message=first))
    plane.until(lambda: waiting(plane, order.order_id) == [("two", "steer", "taking_back")])
    oka.report(order, CommentStep(text="Taken back.", taken_back=(second,)))
    plane.until(lambda: waiting(plane, order.order_id) == [])


def test_a_run_after_a_lost_one_does_not_hear_what_was_taken_back_and_all_else_once(
    plane: Plane, oka: DroneStandIn
) -> None:
    first = running(plane, oka)
    for text in ("one", "two", "three"):
        say(plane, first.order_id, text)
    clear(plane, first.order_id, "two")
    oka.report(first, oka.ended(status="preempted", exit_status="canceled", give_back=True))
    second = claimed(plane, oka)
    oka.report(second, oka.started())
    plane.until(lambda: [text for text, *_ in heard(oka, second)] == ["one", "three"])
    assert waiting(plane, first.order_id) == [("one", "steer", "queued"), ("three", "steer", "queued")]
