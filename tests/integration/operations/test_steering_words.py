"""What people say to an order reaches its run, whenever it is said, and is never lost without a word."""

from __future__ import annotations

import pytest

from control_plane.db.drones import InboxMessage
from control_plane.documents.orders import SayRequest
from control_plane.operations.orders import steering
from control_plane.operations.orders.canceling import cancel
from shared.errors import Conflict, Invalid
from shared.events import UserStep
from shared.reasons import RunEnd
from shared.work_order import WorkOrder
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn


def say(plane: Plane, order_id: str, text: str, **when: bool) -> str:
    """Say something as the admin; the order's status then."""
    return steering.say(plane.core, plane.admin, order_id, SayRequest(text=text, **when)).status


def claimed(plane: Plane, drone: DroneStandIn) -> WorkOrder:
    order = plane.until(drone.take)
    drone.renew_lease()
    assert drone.claim(order)
    return order


def running(plane: Plane, drone: DroneStandIn) -> WorkOrder:
    """An order that runs on the drone."""
    plane.submit()
    order = claimed(plane, drone)
    drone.report(order, drone.started())
    plane.until(lambda: plane.status(order.order_id) == "running")
    return order


def heard(drone: DroneStandIn, order: WorkOrder) -> list[tuple[str, bool, bool]]:
    """What the run was told, inside its order and by the drone's inbox: text, after, interrupt; sorted by text."""
    along = [(word.text, word.after, False) for word in order.said]
    bodies = [message.body for message in drone.told("say") if message.body.run_id == order.run_id]
    return sorted([*along, *((body.text, body.after, body.interrupt) for body in bodies)])


def test_what_is_said_to_a_running_order_is_left_for_its_run(plane: Plane) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    order = running(plane, oka)
    assert say(plane, order.order_id, "1 steer") == "running"
    say(plane, order.order_id, "2 after", after=True)
    say(plane, order.order_id, "3 now", interrupt=True)
    plane.until(lambda: len(heard(oka, order)) == 3)
    assert heard(oka, order) == [("1 steer", False, False), ("2 after", True, False), ("3 now", False, True)]


def test_what_is_said_before_the_run_begins_is_told_to_it_when_it_begins(plane: Plane) -> None:
    order_id = plane.submit()
    assert say(plane, order_id, "1 while queued") == "queued"
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    order = claimed(plane, oka)
    assert say(plane, order_id, "2 while assigned", interrupt=True) == "assigned"
    assert plane.rows(InboxMessage) == []
    oka.report(order, oka.started())
    plane.until(lambda: len(heard(oka, order)) == 2)
    # Nothing has begun that the second could interrupt.
    assert heard(oka, order) == [("1 while queued", False, False), ("2 while assigned", False, False)]


def test_a_word_that_a_lost_run_did_not_take_up_goes_along_to_the_next_drone(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.collector(), plane.supervisor()
    lost = running(plane, oka)
    say(plane, lost.order_id, "mind the tests")
    mila = plane.drone("mila")
    mila.renew_lease()
    oka.restart()
    oka.beat(draining=True)
    again = plane.until(lambda: mila.take() or oka.take())
    holder = mila if again.drone_id == mila.id else oka
    assert holder.claim(again)
    holder.report(again, holder.started())
    plane.until(lambda: heard(holder, again) == [("mind the tests", False, False)])
    assert again.run_id != lost.run_id


def test_a_run_that_begins_afresh_hears_also_what_the_run_before_it_had_heard(plane: Plane) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    first = running(plane, oka)
    say(plane, first.order_id, "mind the tests")
    oka.report(first, UserStep(text="mind the tests", source="steer"))
    oka.report(first, oka.ended(status="preempted", exit_status="canceled", give_back=True))
    second = claimed(plane, oka)
    oka.report(second, oka.started())
    plane.until(lambda: heard(oka, second) == [("mind the tests", False, False)])


def test_the_order_shows_what_its_run_has_not_taken_up_yet(plane: Plane) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    order = running(plane, oka)
    say(plane, order.order_id, "one")
    say(plane, order.order_id, "at the end", after=True)
    say(plane, order.order_id, "two")
    oka.report(order, UserStep(text="one", source="steer"), UserStep(text="a note", source="loop"))
    plane.until(lambda: [word.text for word in plane.order(order.order_id).unheard] == ["at the end", "two"])
    oka.report(order, UserStep(text="at the end", source="follow_up"))
    plane.until(lambda: [word.text for word in plane.order(order.order_id).unheard] == ["two"])
    # A word that came too late is told of when the order ends.
    oka.report(order, oka.ended())
    done = plane.until(lambda: (o := plane.order(order.order_id)).status == "succeeded" and o)
    ended = plane.facts(order.order_id).ended
    assert isinstance(ended, RunEnd)
    assert (ended.unheard, ended.session) == (1, done.session)
    assert [word.text for word in done.unheard] == ["two"]


def test_an_order_that_is_canceled_or_has_ended_cannot_be_told_anything_and_names_the_way_on(plane: Plane) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    order = running(plane, oka)
    cancel(plane.core, plane.admin, order.order_id)
    with pytest.raises(Conflict, match="is canceling"):
        say(plane, order.order_id, "wait")
    oka.report(order, oka.ended(status="preempted", exit_status="canceled"))
    plane.until(lambda: plane.status(order.order_id) == "canceled")
    with pytest.raises(Conflict) as refused:
        say(plane, order.order_id, "too late")
    assert f"--session {plane.order(order.order_id).session}" in refused.value.next


def test_what_is_no_text_or_too_long_is_refused(plane: Plane) -> None:
    """Nor can a word both wait until the model stops and interrupt it."""
    order_id = plane.submit()
    for text in ("  \n", "x" * (64 * 1024 + 1), "ü" * 40_000, "a\0b", "\ud800"):
        with pytest.raises(Invalid):
            say(plane, order_id, text)
    with pytest.raises(Invalid):
        say(plane, order_id, "x", after=True, interrupt=True)
    assert say(plane, order_id, "x" * 64 * 1024) == "queued"
