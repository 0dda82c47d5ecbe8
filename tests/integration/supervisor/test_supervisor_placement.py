"""Which drone gets an order, and what an order says that waits."""

from __future__ import annotations

from datetime import timedelta

from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.operations.drones import managing
from shared.reasons import (
    DroneLabels,
    DroneState,
    EarlierOrder,
    InQueue,
    NoDrone,
    NoDroneFits,
    NoDroneTakesWork,
    Placed,
)
from shared.states import OrderStatus
from tests.support.planes import Plane


def state(plane: Plane, order_id: str) -> DroneState | None:
    """Why the drone in whose queue the order is does not start it."""
    waits = plane.facts(order_id).waits
    return waits.state if isinstance(waits, InQueue) else None


def placed_on(plane: Plane, order_id: str) -> str | None:
    return plane.order(order_id).drone


def test_an_order_goes_to_the_drone_that_it_names_also_while_that_is_offline_or_full(plane: Plane) -> None:
    plane.drone("oka", concurrency=1)
    plane.drone("mila", online=False)
    running = plane.submit(drone="oka")
    plane.edit(Order, running, status=OrderStatus.RUNNING.value)
    order_id = plane.submit(drone="mila")
    assert (plane.status(order_id), plane.facts(order_id).placed) == ("assigned", Placed(code="named", drone="mila"))
    assert state(plane, order_id) == DroneState(drone="mila", code="never_started")
    busy = DroneState(drone="oka", code="busy", running=1, slots=1)
    assert state(plane, plane.submit(drone="oka")) == busy


def test_the_least_work_in_hand_wins_measured_by_concurrency(plane: Plane) -> None:
    plane.drone("big", concurrency=4)
    plane.drone("small", concurrency=1)
    chosen = [placed_on(plane, plane.submit()) for _ in range(10)]
    assert (chosen.count("big"), chosen.count("small")) == (8, 2)


def test_a_drone_that_has_the_repository_goes_before_an_idle_one_without(plane: Plane) -> None:
    plane.drone("mila")
    oka = plane.drone("oka")
    plane.collector(), plane.supervisor()
    first = plane.submit(drone="oka")
    oka.do(plane.until(oka.take))
    plane.until(lambda: plane.status(first) == "succeeded")
    assert plane.facts(plane.submit()).placed == Placed(code="repository", drone="oka")


def test_an_order_that_waits_says_which_drones_there_are_and_why_none_takes_it(plane: Plane) -> None:
    order_id = plane.submit()
    assert (plane.order(order_id).status, plane.facts(order_id).waits) == ("queued", NoDrone())
    plane.drone("oka", labels={"gpu": "no"})
    plane.drone("mila", online=False)
    fleet = (DroneLabels(drone="mila"), DroneLabels(drone="oka", labels=("gpu=no",)))
    fits_none = plane.facts(plane.submit(labels={"gpu": "yes"})).waits
    assert fits_none == NoDroneFits(labels=("gpu=yes",), fleet=fleet)
    managing.drain(plane.core, plane.admin, "oka")
    states = (DroneState(drone="mila", code="never_started"), DroneState(drone="oka", code="draining"))
    assert plane.facts(plane.submit()).waits == NoDroneTakesWork(states=states)


def test_orders_of_one_session_run_one_at_a_time(plane: Plane) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    first = plane.submit()
    second = plane.submit(session=plane.order(first).session)
    assert plane.facts(second).waits == EarlierOrder(order=first)
    oka.do(plane.until(oka.take))
    assert plane.until(oka.take).order_id == second


def test_urgent_orders_are_placed_first(plane: Plane) -> None:
    plain, urgent = plane.submit(), plane.submit(priority=5)
    oka = plane.drone(online=False)
    plane.collector(), plane.supervisor()
    oka.beat()
    plane.until(lambda: oka.queued() == 2)
    assert [oka.take().order_id, oka.take().order_id] == [urgent, plain]


def test_an_order_that_names_its_drone_stays_there_and_its_reason_follows_the_drone(plane: Plane) -> None:
    oka = plane.drone("oka")
    order_id = plane.submit(drone="oka")
    plane.supervisor()
    plane.drone("mila")
    plane.edit(Drone, oka.id, stopped_at=plane.core.clock.now())
    plane.until(lambda: (found := state(plane, order_id)) and found.code == "offline")
    assert placed_on(plane, order_id) == "oka"
    plane.edit(Drone, oka.id, stopped_at=None)
    plane.until(lambda: state(plane, order_id) is None)
    assert plane.facts(order_id).placed == Placed(code="named", drone="oka")


def test_an_unclaimed_order_leaves_a_drone_that_went_offline(plane: Plane) -> None:
    oka = plane.drone("oka")
    order_id = plane.submit()
    plane.supervisor()
    taken = plane.until(oka.take)
    plane.drone("mila")
    plane.edit(Drone, oka.id, last_seen_at=plane.core.clock.now() - timedelta(minutes=2))
    plane.until(lambda: placed_on(plane, order_id) == "mila")
    assert oka.claim(taken) is False
