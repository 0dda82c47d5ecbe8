"""How drones are scored for an order: by what runs of its project took, by rate limits, hours and rivals."""

from __future__ import annotations

import time
from typing import Any

from control_plane.broker.broker import Broker
from control_plane.db.projects import Project, Provider
from control_plane.documents.orders import PlacementDocument
from control_plane.rates.groups import group_of_provider, state_key
from control_plane.rates.headroom import seconds_until_calls
from control_plane.rates.state import GroupState
from shared.events import AssistantStep, Prepared, Stats, Usage, UserStep
from tests.support.database import CoreFactory
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn


def do(plane: Plane, drone: DroneStandIn, *, cloned_s: float | None = None, took_s: float = 90) -> str:
    """One order on this drone, to its end."""
    order = plane.claimed(drone)
    prompt, answer = UserStep(text="do it", source="prompt"), AssistantStep(text="done", usage=Usage(cost_usd=0.0))
    prepared = Prepared(base_commit="a" * 40, cloned_s=cloned_s)
    ended = drone.ended(stats=Stats(cost_usd=0.0, duration_ms=int(took_s * 1000)))
    drone.report(order, drone.started(), prepared, prompt, answer, ended)
    plane.until(lambda: plane.status(order.order_id) == "succeeded")
    return order.order_id


def project(plane: Plane) -> Project:
    (found,) = plane.rows(Project)
    assert isinstance(found, Project)
    return found


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


def test_a_project_learns_how_long_its_clones_and_runs_take(plane: Plane) -> None:
    oka, mila = plane.drone("oka"), plane.drone("mila")
    plane.collector(), plane.supervisor()
    do(plane, oka, cloned_s=40, took_s=100)
    assert (project(plane).clone_s, project(plane).run_s) == (40, 100)
    do(plane, oka, took_s=200)
    do(plane, mila, cloned_s=90, took_s=120)
    assert (project(plane).clone_s, project(plane).run_s) == (50, 120)


def test_a_run_tells_how_each_drone_was_scored(plane: Plane) -> None:
    oka, mila = plane.drone("oka"), plane.drone("mila")
    plane.collector(), plane.supervisor()
    do(plane, oka, cloned_s=40, took_s=100)
    found = placement(plane, oka, plane.submit())
    assert found.because == "assigned to oka (has the repository and a free slot)"
    assert (shown(found), found.scored) == ({"oka": {}, "mila": {"clone_s": 40}}, 2)
    # The second slot of oka is shared: 5 % of a run for half of the machine.
    found = placement(plane, oka, plane.submit())
    assert shown(found) == {"oka": {"share_s": 2.5}, "mila": {"clone_s": 40}}
    found = placement(plane, mila, plane.submit())
    assert shown(found) == {"mila": {"clone_s": 40}, "oka": {"queue_s": 50, "share_s": 5}}
    assert not found.scores[1].free


def test_a_drone_whose_own_key_is_paused_goes_after_the_others(plane: Plane) -> None:
    oka, mila = plane.drone("oka"), plane.drone("mila")
    plane.collector(), plane.supervisor()
    do(plane, oka, cloned_s=40)
    with plane.core.database.write() as db:
        provider = db.query(Provider).one()
        provider.sealed_key, provider.key_variable = None, "OWN_KEY"
    paused = GroupState(paused_until=time.time() + 300)
    key = state_key(group_of_provider(plane.core.vault, provider, oka.id))
    plane.core.broker.redis.set(key, paused.model_dump_json())
    found = placement(plane, mila, plane.submit())
    assert shown(found)["mila"] == {"clone_s": 40}
    assert 200 < found.scores[1].permit_s <= 300


def test_while_the_broker_is_away_orders_are_scored_without_the_limits(
    core_factory: CoreFactory, sqlite_url: str
) -> None:
    core = core_factory(sqlite_url, broker=Broker("redis://127.0.0.1:1/0"))
    provider = Provider(id="p" * 12, model="openai/scripted", key_variable="OWN_KEY")
    assert seconds_until_calls(core, provider, "openai/scripted", ["d" * 12]) == {}
