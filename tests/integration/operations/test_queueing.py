"""Move orders that wait, and change the order in which they start."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from control_plane.contract.declarations.orders import MoveRequest, PriorityRequest
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order
from control_plane.operations.orders.canceling import cancel
from control_plane.operations.orders.queueing import move, set_priority
from control_plane.supervisor.outbox_relay import Relay
from control_plane.supervisor.placing import place_queued
from shared import names
from tests.support.made import start_run
from tests.support.planes import LivePlane, Plane
from tests.support.refusals import code_of
from tests.support.stand_in import DroneStandIn


@pytest.fixture
def plane(live_plane: LivePlane) -> Plane:
    """Without components; its time passes, so that orders that are placed one after the other can be told apart."""
    return live_plane


@pytest.fixture
def queue(plane: Plane, oka: DroneStandIn) -> list[str]:
    """Three orders on the drone oka: the first at work, the other two published to its queue."""
    plane.edit(Drone, oka.id, concurrency=1)
    found = [plane.submit(f"order {n}") for n in range(3)]
    place_queued(plane.core)
    Relay(plane.core).publish_all()
    start_run(plane.core, found[0])
    return found


def moved(plane: Plane, order_id: str, drone: str | None = None) -> str | None:
    """Move an order; the drone that it waits for then."""
    return move(plane.core, plane.admin, order_id, MoveRequest(drone=drone)).drone


def prioritized(plane: Plane, order_id: str, priority: int) -> int:
    return set_priority(plane.core, plane.admin, order_id, PriorityRequest(priority=priority)).priority


def queued_on(plane: Plane) -> list[str]:
    """The orders that wait for a drone, in the order in which they were placed."""
    with plane.core.database.read() as db:
        waiting = select(Order.id).join(Dispatch, Dispatch.id == Order.run_id).where(Order.status == "assigned")
        return list(db.scalars(waiting.order_by(Dispatch.created_at, Dispatch.id)))


def test_a_waiting_order_moves_to_the_named_drone_alone(plane: Plane, oka: DroneStandIn, queue: list[str]) -> None:
    plane.drone("bela", concurrency=1)
    before = plane.dispatch(queue[1])
    assert code_of(lambda: moved(plane, queue[1], "nobody")) == "E-DRONE-404"
    assert moved(plane, queue[1], "bela") == "bela"
    after = plane.order(queue[1])
    assert (after.status, after.generation, plane.order(queue[2]).drone) == ("assigned", 2, "oka")
    assert plane.key(oka, before.id).startswith("revoked")
    assert plane.rows(Dispatch, Dispatch.id == before.id)[0].closed_at is not None
    # Without a name, an order may go anywhere again.
    assert moved(plane, plane.submit("only on oka", drone="oka")) == "bela"


def test_an_order_that_has_started_or_was_claimed_is_not_moved(
    plane: Plane, oka: DroneStandIn, queue: list[str]
) -> None:
    plane.drone("bela")
    order = oka.take()
    while order is not None and order.order_id != queue[1]:
        order = oka.take()
    assert order is not None
    assert oka.claim(order)
    assert [code_of(lambda each=each: moved(plane, each, "bela")) for each in queue[:2]] == ["E-ORDER-STATE"] * 2
    assert [plane.order(each).drone for each in queue[:2]] == ["oka", "oka"]


def test_a_waiting_order_whose_key_the_broker_lost_moves_once_its_drone_is_offline(
    plane: Plane, oka: DroneStandIn, queue: list[str]
) -> None:
    plane.drone("bela", concurrency=1)
    run_id, reported = plane.dispatch(queue[1]).id, plane.dispatch(queue[2]).id
    plane.core.broker.redis.delete(names.run_key(oka.id, run_id), names.run_key(oka.id, reported))
    plane.edit(Dispatch, reported, claimed_at=plane.core.clock.now())
    assert code_of(lambda: moved(plane, queue[1], "bela")) == "E-ORDER-STATE"
    plane.edit(Drone, oka.id, stopped_at=plane.core.clock.now())
    assert (moved(plane, queue[1], "bela"), plane.key(oka, run_id)) == ("bela", "revoked:1")
    assert code_of(lambda: moved(plane, queue[2], "bela")) == "E-ORDER-STATE"


def test_a_higher_priority_starts_first_and_a_lower_one_last_and_the_others_keep_their_place(
    plane: Plane, queue: list[str]
) -> None:
    assert queued_on(plane) == queue[1:]
    assert prioritized(plane, queue[1], -5) == -5
    assert queued_on(plane) == [queue[2], queue[1]]
    assert plane.order(queue[2]).generation == 1
    assert prioritized(plane, queue[1], 5) == 5
    assert queued_on(plane) == [queue[1], queue[2]]
    cancel(plane.core, plane.admin, queue[1])
    assert code_of(lambda: prioritized(plane, queue[1], 1)) == "E-ORDER-STATE"


def test_a_new_order_of_a_higher_priority_overtakes_those_that_wait_at_its_drone_and_others_keep_their_place(
    plane: Plane, oka: DroneStandIn, queue: list[str]
) -> None:
    relay = Relay(plane.core)
    added: list[str] = []
    for priority in (-5, 0, 5):
        added.append(plane.submit(f"priority {priority}", drone="oka", priority=priority))
        relay.publish_all()
    low, equal, high = added
    assert queued_on(plane) == [high, *queue[1:], equal, low]
    oka.take()  # the one at work
    taken = [order.order_id for order in iter(oka.take, None) if oka.claim(order)]
    assert taken == [high, *queue[1:], equal, low]
    # What its drone has claimed is not taken back.
    highest = plane.submit("too late", drone="oka", priority=9)
    relay.publish_all()
    assert [plane.order(each).generation for each in (highest, high, equal, low)] == [1, 1, 2, 3]
