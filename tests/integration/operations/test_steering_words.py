"""What people say to an order reaches its run, whenever it is said, and is never lost without a word."""

from __future__ import annotations

import pytest

from control_plane.core import Caller
from control_plane.db.drones import InboxMessage
from control_plane.documents.orders import SayRequest
from control_plane.operations.orders import steering
from control_plane.operations.orders.canceling import cancel
from shared.errors import Conflict, Forbidden, Invalid, NotFound
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


def test_what_is_said_to_a_running_order_is_left_for_its_run(any_plane: Plane) -> None:
    oka = any_plane.drone()
    any_plane.collector(), any_plane.supervisor()
    order = running(any_plane, oka)
    assert say(any_plane, order.order_id, "1 steer") == "running"
    say(any_plane, order.order_id, "2 after", after=True)
    say(any_plane, order.order_id, "3 now", interrupt=True)
    any_plane.until(lambda: len(heard(oka, order)) == 3)
    assert heard(oka, order) == [("1 steer", False, False), ("2 after", True, False), ("3 now", False, True)]


def test_what_is_said_before_the_run_begins_is_told_to_it_when_it_begins(any_plane: Plane) -> None:
    order_id = any_plane.submit()
    assert say(any_plane, order_id, "1 while queued") == "queued"
    oka = any_plane.drone()
    any_plane.collector(), any_plane.supervisor()
    order = claimed(any_plane, oka)
    assert say(any_plane, order_id, "2 while assigned", interrupt=True) == "assigned"
    assert any_plane.rows(InboxMessage) == []
    oka.report(order, oka.started())
    any_plane.until(lambda: len(heard(oka, order)) == 2)
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


def test_a_word_that_came_too_late_is_told_of_when_the_order_ends(plane: Plane) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    order = running(plane, oka)
    say(plane, order.order_id, "one thing more")
    oka.report(order, oka.ended())
    done = plane.until(lambda: (o := plane.order(order.order_id)).status == "succeeded" and o)
    ended = plane.facts(order.order_id).ended
    assert isinstance(ended, RunEnd)
    assert (ended.unheard, ended.session) == (1, done.session)
    assert [word.text for word in done.unheard] == ["one thing more"]


def test_an_order_whose_words_were_all_taken_up_ends_without_a_note(plane: Plane) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    order = running(plane, oka)
    say(plane, order.order_id, "one thing more")
    oka.report(order, UserStep(text="one thing more", source="steer"), oka.ended(reason="the model stopped"))
    done = plane.until(lambda: (o := plane.order(order.order_id)).status == "succeeded" and o)
    assert (done.reason, done.unheard) == ("the model stopped", [])


def test_an_order_that_has_ended_cannot_be_told_anything_and_names_the_way_on(plane: Plane) -> None:
    order_id = plane.submit()
    cancel(plane.core, plane.admin, order_id)
    with pytest.raises(Conflict) as refused:
        say(plane, order_id, "too late")
    session = plane.order(order_id).session
    assert refused.value.next == f"fleet submit 'TEXT' --project app --session {session}"


def test_an_order_that_is_being_canceled_cannot_be_told_anything(plane: Plane) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    order = running(plane, oka)
    cancel(plane.core, plane.admin, order.order_id)
    with pytest.raises(Conflict, match="is canceling"):
        say(plane, order.order_id, "wait")


@pytest.mark.parametrize("text", ["", "  \n", "x" * (64 * 1024 + 1), "ü" * 40_000, "a\0b", "\ud800"])
def test_what_is_no_text_or_too_long_is_refused(plane: Plane, text: str) -> None:
    order_id = plane.submit()
    with pytest.raises(Invalid):
        say(plane, order_id, text)


def test_a_text_of_64_kb_is_taken(plane: Plane) -> None:
    assert say(plane, plane.submit(), "x" * 64 * 1024) == "queued"


def test_a_word_cannot_wait_and_interrupt(plane: Plane) -> None:
    order_id = plane.submit()
    with pytest.raises(Invalid, match="either wait until the model stops or interrupt it"):
        say(plane, order_id, "x", after=True, interrupt=True)


def test_viewers_strangers_and_orders_that_are_not_there_are_refused(plane: Plane) -> None:
    order_id = plane.submit()
    viewer = Caller(plane.admin.organization_id, "default", "viewer", "v")
    stranger = Caller("0" * 12, "other", "admin", "s")
    with pytest.raises(Forbidden):
        steering.say(plane.core, viewer, order_id, SayRequest(text="x"))
    with pytest.raises(NotFound):
        steering.say(plane.core, stranger, order_id, SayRequest(text="x"))
    with pytest.raises(NotFound):
        say(plane, "0" * 12, "x")
