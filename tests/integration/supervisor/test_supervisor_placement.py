"""Which drone gets an order, how drones are scored for it, and what an order says that waits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from sqlalchemy import event, insert

from control_plane.contract.declarations.organizations import OrganizationRequest
from control_plane.contract.documents.orders import PlacementDocument
from control_plane.core import Core
from control_plane.db.drones import Drone
from control_plane.db.installation import Organization
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.money.rates.groups import group_of_provider, state_key
from control_plane.money.rates.state import GroupState
from control_plane.operations import organizations
from control_plane.operations.drones import managing
from control_plane.orders import placement
from control_plane.orders.placement import Placement, place
from control_plane.supervisor.outbox_relay import Relay
from control_plane.supervisor.placing import place_queued, refresh_reasons
from shared.events import AssistantStep, Prepared, Stats, Usage, UserStep
from shared.names import new_id
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
from tests.support.stand_in import DroneStandIn
from tests.support.turns import end


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
    plane.edit(Order, running, status=OrderStatus.SUCCEEDED.value, ended_at=plane.core.clock.now())
    assert refresh_reasons(plane.core) == [waiting]
    assert (state(plane, waiting), placed_on(plane, waiting)) == (None, "oka")


def test_the_least_work_in_hand_wins_measured_by_concurrency(plane: Plane) -> None:
    plane.drone("big", concurrency=4)
    plane.drone("small", concurrency=1)
    chosen = [placed_on(plane, plane.submit()) for _ in range(5)]
    assert (chosen.count("big"), chosen.count("small")) == (4, 1)


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


def test_orders_of_one_session_run_one_at_a_time(plane: Plane, oka: DroneStandIn) -> None:
    first = plane.submit()
    second = plane.submit(session=plane.order(first).session)
    place_queued(plane.core)
    assert (plane.status(second), plane.facts(second).waits) == ("queued", EarlierOrder(order=first))
    end(plane.core, first, steps=())
    place_queued(plane.core)
    assert (plane.status(second), placed_on(plane, second)) == ("assigned", oka.name)


def test_urgent_orders_are_placed_first(plane: Plane) -> None:
    plain, urgent = plane.submit(), plane.submit(priority=5)
    oka = plane.drone()
    place_queued(plane.core)
    Relay(plane.core).publish_all()
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


def do(plane: Plane, drone: DroneStandIn, *, cloned_s: float, took_s: float) -> None:
    """One order on this drone, to its end."""
    order = plane.claimed(drone)
    prompt, answer = UserStep(text="do it", source="prompt"), AssistantStep(text="done", usage=Usage(cost_usd=0.0))
    prepared = Prepared(base_commit="a" * 40, cloned_s=cloned_s)
    ended = drone.ended(stats=Stats(cost_usd=0.0, duration_ms=int(took_s * 1000)))
    drone.report(order, drone.started(), prepared, prompt, answer, ended)
    plane.reaches(order.order_id, "succeeded")


def scored_for(plane: Plane, drone: DroneStandIn, order_id: str) -> PlacementDocument:
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
    order_id = running.submit()
    assert running.facts(order_id).placed == Placed(code="repository", drone="oka")
    found = scored_for(running, oka, order_id)
    assert found.because == "assigned to oka (has the repository and a free slot)"
    assert (shown(found), found.scored) == ({"oka": {}, "mila": {"clone_s": 40}}, 2)
    # The second slot of oka is shared: 5 % of a run for half of the machine.
    found = scored_for(running, oka, running.submit())
    assert shown(found) == {"oka": {"share_s": 2.5}, "mila": {"clone_s": 40}}
    found = scored_for(running, mila, running.submit())
    assert shown(found) == {"mila": {"clone_s": 40}, "oka": {"queue_s": 50, "share_s": 5}}
    assert not found.scores[1].free
    # A key of its own that is paused counts against a drone.
    with running.core.database.write() as db:
        provider = db.query(Provider).one()
        provider.sealed_key, provider.key_variable = None, "OWN_KEY"
    paused = GroupState(paused_until=time.time() + 300)
    key = state_key(group_of_provider(running.core.vault, provider, oka.id))
    running.core.broker.redis.set(key, paused.model_dump_json())
    found = scored_for(running, mila, running.submit())
    assert (found.scores[1].drone, 200 < found.scores[1].permit_s <= 300) == ("oka", True)


# --- in a fleet of many drones, an order is placed as if all of them were scored, and only some of them are read


MANY = 150


def add_drones(plane: Plane, count: int, **fields: Any) -> list[str]:
    """Drones like the newest one, which never beat again; returns their ids."""
    pattern = plane.rows(Drone)[-1]
    kept = {column.key: getattr(pattern, column.key) for column in Drone.__mapper__.column_attrs}
    number = len(plane.rows(Drone))
    rows = [
        {**kept, "id": new_id(), "name": f"d{number + index:04}", "token_hash": new_id(), **fields}
        for index in range(count)
    ]
    with plane.core.database.write() as db:
        db.execute(insert(Drone), rows)
    return [str(row["id"]) for row in rows]


def beats_on(core: Core) -> datetime:
    """A last beat of drones that are online for the whole test, however slow the machine is."""
    return core.clock.now() + timedelta(hours=1)


def found(core: Core, order_id: str) -> Any:
    """Where the order would go now; nothing changes."""
    with core.database.read() as db:
        return place(db, core, db.get_one(Order, order_id))


def chosen(core: Core, order_id: str) -> str:
    placed = found(core, order_id)
    assert isinstance(placed, Placement)
    return placed.drone.name


@pytest.fixture
def queued(plane: Plane) -> str:
    """An order of any drone that waits, as its only drone is offline."""
    plane.drone("away", online=False)
    return plane.submit()


@pytest.fixture
def loads() -> Iterator[list[Any]]:
    """Every drone that is read from the database."""
    seen = list[Any]()

    def note(drone: Drone, _context: object) -> None:
        seen.append(drone)

    event.listen(Drone, "load", note)
    yield seen
    event.remove(Drone, "load", note)


def hold(plane: Plane, drone_id: str, count: int, *, ended: bool = False) -> None:
    """Orders that the drone has in hand, or that it ran once."""
    for _ in range(count):
        order_id = plane.submit(drone="away")
        now = plane.core.clock.now()
        status = OrderStatus.SUCCEEDED if ended else OrderStatus.RUNNING
        plane.edit(Order, order_id, drone_id=drone_id, status=status, started_at=now, ended_at=now if ended else None)


@pytest.mark.dialects
def test_the_choice_is_the_one_among_all_drones(plane: Plane, queued: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random, now = Random(0), beats_on(plane.core)
    for _ in range(8):
        (made,) = add_drones(plane, 1, concurrency=random.randint(2, 4), last_seen_at=now, stopped_at=None)
        if random.random() < 0.8:
            hold(plane, made, random.randint(1, 3), ended=random.random() < 0.2)
    for broken in ({"draining": True}, {"stopped_at": now}, {"removed_at": now}, {"over_quota_at": now}):
        add_drones(plane, 1, **{"last_seen_at": now, "stopped_at": None, **broken})
    add_drones(plane, 1, last_seen_at=plane.core.clock.now() - timedelta(seconds=20), stopped_at=None)
    among_all = chosen(plane.core, queued)
    monkeypatch.setattr(placement, "ENOUGH", 3)
    assert chosen(plane.core, queued) == among_all
    assert found(plane.core, queued).scored == 3


@pytest.mark.dialects
def test_few_drones_of_many_are_read_and_those_with_a_label_or_of_all_organizations_are_found(
    plane: Plane, queued: str, loads: list[Any]
) -> None:
    organizations.create(plane.core, replace(plane.admin, everywhere=True), OrganizationRequest(name="other"))
    (other,) = plane.rows(Organization, Organization.name == "other")
    now = beats_on(plane.core)
    (serving, *_) = add_drones(plane, MANY, last_seen_at=now, organization_id=other.id)
    assert found(plane.core, queued).code == "no_drone_takes_work"
    plane.edit(Drone, serving, serves=["*"])
    assert chosen(plane.core, queued) == "d0001"

    add_drones(plane, MANY, last_seen_at=now, organization_id=plane.admin.organization_id)
    loads.clear()
    placed = found(plane.core, queued)
    assert (placed.scored, len(placed.scores), len(loads)) == (64, 8, 64)

    plane.edit(Order, queued, wanted_labels={"gpu": "yes"})
    mine = {"last_seen_at": now, "labels": {"gpu": "yes"}, "organization_id": plane.admin.organization_id}
    add_drones(plane, 1, **mine)
    assert found(plane.core, queued).because == Placed(code="only_drone", drone="d0301", labels=("gpu=yes",))
    add_drones(plane, 1, **mine)
    placed = found(plane.core, queued)
    assert (placed.because.code, placed.scored) == ("least_work", 2)
