"""Which drone gets an order, how drones are scored for it, and what an order says that waits."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from control_plane.contract.documents.orders import PlacementDocument
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.money.rates.groups import group_of_provider, state_key
from control_plane.money.rates.state import GroupState
from control_plane.operations.drones import managing
from shared.events import AssistantStep, Prepared, Stats, Usage, UserStep
from shared.reasons import (
    CannotBeSent,
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
from tests.support.stand_in import DroneStandIn


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
    waiting = plane.submit(drone="oka")
    assert state(plane, waiting) == busy
    # Its reason follows the drone.
    plane.supervisor()
    plane.edit(Order, running, status=OrderStatus.SUCCEEDED.value, ended_at=plane.core.clock.now())
    plane.until(lambda: state(plane, waiting) is None)
    assert placed_on(plane, waiting) == "oka"


def test_the_least_work_in_hand_wins_measured_by_concurrency(plane: Plane) -> None:
    plane.drone("big", concurrency=4)
    plane.drone("small", concurrency=1)
    chosen = [placed_on(plane, plane.submit()) for _ in range(10)]
    assert (chosen.count("big"), chosen.count("small")) == (8, 2)


def test_a_drone_that_has_the_repository_goes_before_an_idle_one_without(running: Plane, oka: DroneStandIn) -> None:
    running.drone("mila")
    first = running.submit(drone="oka")
    oka.do(running.until(oka.take))
    running.reaches(first, "succeeded")
    assert running.facts(running.submit()).placed == Placed(code="repository", drone="oka")


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


def test_orders_of_one_session_run_one_at_a_time(running: Plane, oka: DroneStandIn) -> None:
    first = running.submit()
    second = running.submit(session=running.order(first).session)
    assert running.facts(second).waits == EarlierOrder(order=first)
    oka.do(running.until(oka.take))
    assert running.until(oka.take).order_id == second


def test_an_order_whose_rows_cannot_be_read_says_so_and_keeps_no_other_back(plane: Plane) -> None:
    broken, well = plane.submit(), plane.submit()
    plane.edit(Order, broken, wanted_labels=["no", "mapping"])
    drone = plane.drone()
    plane.supervisor()
    plane.until(lambda: drone.queued() == 1)
    assert drone.take().order_id == well
    waits = plane.facts(broken).waits
    assert isinstance(waits, CannotBeSent)
    assert waits.detail == "it cannot be placed (AttributeError)"


def test_urgent_orders_are_placed_first(plane: Plane) -> None:
    plain, urgent = plane.submit(), plane.submit(priority=5)
    oka = plane.drone(online=False)
    plane.collector(), plane.supervisor()
    oka.beat()
    plane.until(lambda: oka.queued() == 2)
    assert [oka.take().order_id, oka.take().order_id] == [urgent, plain]


def test_an_unclaimed_order_leaves_a_drone_that_went_offline(plane: Plane) -> None:
    oka = plane.drone("oka")
    order_id = plane.submit()
    plane.supervisor()
    taken = plane.until(oka.take)
    plane.drone("mila")
    plane.edit(Drone, oka.id, last_seen_at=plane.core.clock.now() - timedelta(minutes=2))
    plane.until(lambda: placed_on(plane, order_id) == "mila")
    assert oka.claim(taken) is False


# --- how drones are scored for an order


def do(plane: Plane, drone: DroneStandIn, *, cloned_s: float | None = None, took_s: float = 90) -> str:
    """One order on this drone, to its end."""
    order = plane.claimed(drone)
    prompt, answer = UserStep(text="do it", source="prompt"), AssistantStep(text="done", usage=Usage(cost_usd=0.0))
    prepared = Prepared(base_commit="a" * 40, cloned_s=cloned_s)
    ended = drone.ended(stats=Stats(cost_usd=0.0, duration_ms=int(took_s * 1000)))
    drone.report(order, drone.started(), prepared, prompt, answer, ended)
    plane.reaches(order.order_id, "succeeded")
    return order.order_id


def placement(plane: Plane, drone: DroneStandIn, order_id: str) -> PlacementDocument:
    """Of the order's first run, which begins."""
    order = plane.until(drone.take)
    assert order.order_id == order_id
    assert drone.claim(order)
    drone.report(order, drone.started())
    (run,) = plane.until(lambda: plane.order(order_id).runs)
    assert run.placement is not None
    return run.placement


def shown(found: PlacementDocument) -> dict[str, dict[str, Any]]:
    """The parts of each score that are not 0."""
    return {
        each.drone: {name: value for name, value in each.model_dump().items() if name.endswith("_s") and value}
        for each in found.scores
    }


def test_a_run_tells_how_each_drone_was_scored(running: Plane) -> None:
    oka, mila = running.drone("oka"), running.drone("mila")
    do(running, oka, cloned_s=40, took_s=100)
    (project,) = running.rows(Project)
    assert (project.clone_s, project.run_s) == (40, 100)
    found = placement(running, oka, running.submit())
    assert found.because == "assigned to oka (has the repository and a free slot)"
    assert (shown(found), found.scored) == ({"oka": {}, "mila": {"clone_s": 40}}, 2)
    # The second slot of oka is shared: 5 % of a run for half of the machine.
    found = placement(running, oka, running.submit())
    assert shown(found) == {"oka": {"share_s": 2.5}, "mila": {"clone_s": 40}}
    found = placement(running, mila, running.submit())
    assert shown(found) == {"mila": {"clone_s": 40}, "oka": {"queue_s": 50, "share_s": 5}}
    assert not found.scores[1].free


def test_a_drone_whose_own_key_is_paused_goes_after_the_others(running: Plane) -> None:
    oka, mila = running.drone("oka"), running.drone("mila")
    do(running, oka, cloned_s=40)
    with running.core.database.write() as db:
        provider = db.query(Provider).one()
        provider.sealed_key, provider.key_variable = None, "OWN_KEY"
    paused = GroupState(paused_until=time.time() + 300)
    key = state_key(group_of_provider(running.core.vault, provider, oka.id))
    running.core.broker.redis.set(key, paused.model_dump_json())
    found = placement(running, mila, running.submit())
    assert shown(found)["mila"] == {"clone_s": 40}
    assert 200 < found.scores[1].permit_s <= 300
