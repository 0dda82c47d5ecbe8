"""Titles of sessions: asked for once, given to no one's order list, and never in place of a name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from control_plane.broker.broker import Broker
from control_plane.contract.declarations.sessions import ForkRequest, SessionEdit, SessionRequest
from control_plane.db.orders import Order
from control_plane.db.sessions import ChatSession
from control_plane.operations import sessions
from control_plane.operations.inbox.listing import count_inbox
from control_plane.operations.orders import reading
from shared.events import RunBeat
from shared.work_order import WorkOrder
from tests.support.database import CoreFactory
from tests.support.planes import Plane, hand_clock, plane_on
from tests.support.stand_in import DroneStandIn


@pytest.fixture
def plane(core_factory: CoreFactory, sqlite_url: str, broker: Broker) -> Iterator[Plane]:
    """A control plane that asks for titles."""
    yield from plane_on(core_factory(sqlite_url, broker=broker, clock=hand_clock(), session_titles=True))


def started(plane: Plane, **fields: Any) -> DroneStandIn:
    drone = plane.drone(**fields)
    plane.collector(), plane.supervisor()
    return drone


def titles(plane: Plane) -> list[Order]:
    return plane.rows(Order, Order.purpose == "title")


def title_of(plane: Plane, order_id: str) -> str:
    """The title of the order's session, as lists show it."""
    return sessions.show(plane.core, plane.admin, plane.order(order_id).session).title


def taken(plane: Plane, drone: DroneStandIn, purpose: str) -> WorkOrder:
    """The next order of this purpose that the drone gets; it runs."""

    def found() -> WorkOrder | None:
        order = drone.take()
        return order if order is not None and order.purpose == purpose else None

    order = plane.until(found)
    assert drone.claim(order)
    drone.report(order, drone.started())
    return order


def written(plane: Plane, drone: DroneStandIn, **how: Any) -> WorkOrder:
    """The order that writes the title, once it has ended like this."""
    order = taken(plane, drone, "title")
    drone.report(order, drone.ended(**how))
    plane.until(lambda: plane.order(order.order_id).ended_at)
    return order


def test_a_model_writes_the_title_of_a_session_from_its_first_prompt(plane: Plane) -> None:
    """Only the first order of a session without a name asks for one, and no user sees that."""
    core, admin, drone = plane.core, plane.admin, started(plane)
    order_id = plane.submit("The parser fails on tabs.\n\nPlease fix it.")
    session = plane.order(order_id).session
    assert title_of(plane, order_id) == "The parser fails on tabs."
    assert [order.id for order in reading.list_orders(core, admin)] == [order_id]
    assert [each.id for each in sessions.list_(core, admin)] == [session]
    plane.submit("two", session=session)
    named = sessions.create(core, admin, SessionRequest(project="app", name="The parser"))
    plane.submit("three", session=named.id)
    assert [order.asked and order.asked["session"] for order in titles(plane)] == [session]

    order = written(plane, drone, response='"Tabs in the parser."')
    assert order.title is not None
    assert order.title.prompt == "The parser fails on tabs.\n\nPlease fix it."
    assert (order.limits.max_retries, order.limits.max_iterations, order.questions) == (0, 1, False)
    assert (title_of(plane, order_id), sessions.show(core, admin, session).name) == ("Tabs in the parser", "")
    orders = [(each.session_title, each.title) for each in reading.list_orders(core, admin)]
    parser = "Tabs in the parser"
    assert orders == [("The parser", "three"), (parser, "two"), (parser, "The parser fails on tabs.")]


def test_sessions_are_searched_by_the_title_that_they_show(plane: Plane) -> None:
    core, admin = plane.core, plane.admin
    session = plane.order(plane.submit("one")).session
    plane.edit(ChatSession, session, title="Tabs in the parser")
    assert [each.id for each in sessions.list_(core, admin, text="PARSER one")] == [session]
    sessions.edit(core, admin, session, SessionEdit(name="Mine"))
    assert sessions.list_(core, admin, text="parser") == []


def test_a_name_that_a_user_gave_is_never_replaced_and_a_fork_keeps_the_title(plane: Plane) -> None:
    core, admin, drone = plane.core, plane.admin, started(plane)
    order_id = plane.submit("one")
    session = plane.order(order_id).session
    sessions.edit(core, admin, session, SessionEdit(name="Mine"))
    written(plane, drone, response="Another one")
    assert (title_of(plane, order_id), sessions.show(core, admin, session).name) == ("Mine", "Mine")
    plane.edit(ChatSession, session, name="", title="Written")
    plane.edit(Order, order_id, status="canceled", ended_at=core.clock.now())
    assert sessions.fork(core, admin, session, ForkRequest()).title == "Written"


def test_without_a_title_the_first_line_stays_and_no_second_call_is_paid_for(plane: Plane) -> None:
    drone = started(plane, concurrency=9)
    hows: tuple[dict[str, Any], ...] = (
        {"status": "preempted", "exit_status": "canceled", "reason": "its slot was needed"},
        {"status": "failed", "exit_status": "lost", "reason": "gone", "order_at_fault": False},
        {"response": " \n** "},
    )
    for how in hows:
        order_id = plane.submit("The first line\nof it")
        order = written(plane, drone, **how)
        assert title_of(plane, order_id) == "The first line"
        assert [each.generation for each in titles(plane) if each.id == order.order_id] == [1]
    assert len(titles(plane)) == len(hows)
    assert count_inbox(plane.core, plane.admin).total == 0


def test_it_waits_for_a_free_slot_and_gives_it_up(plane: Plane) -> None:
    drone = started(plane, concurrency=1)
    plane.submit("one")
    assert [order.status for order in titles(plane)] == ["queued"]
    work = taken(plane, drone, "work")
    drone.report(work, drone.ended())
    order = taken(plane, drone, "title")
    drone.beat(RunBeat(run_id=order.run_id, order_id=order.order_id, generation=order.generation))
    plane.submit("two", session=work.session.id)
    plane.until(lambda: [body for message in drone.told("cancel") if (body := message.body).run_id == order.run_id])
