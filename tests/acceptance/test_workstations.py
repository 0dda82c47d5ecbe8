"""Drones on separate workstations: joining, being chosen, going away and coming back."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from control_plane.declarations import drones
from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.transcripts import transcript_problems
from tests.support.whole_fleet import WholeFleet

pytestmark = [pytest.mark.timeout(300), pytest.mark.apart]


@pytest.fixture
def remote(tmp_path: Path) -> str:
    return f"file://{calc_project(tmp_path / 'calc.git')}"


def test_orders_find_their_drone_by_name_and_by_label_and_wait_for_one_that_is_switched_off(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, remote: str
) -> None:
    fleet = start_fleet()
    fleet.add_work(model.url, remote)
    mila = fleet.workstation("mila", "--label", "gpu=yes")
    mila.start()
    fleet.online("mila", "local-1", seconds=60)

    by_label = fleet.ended(fleet.submit("Note it, script:note", "--label", "gpu=yes")["id"])
    by_name = fleet.ended(fleet.submit("Note it, script:note", "--drone", "local-1")["id"])
    assert (by_label["drone"], by_name["drone"]) == ("mila", "local-1")

    assert mila.stop() == 0
    with fleet.client() as client:
        wait_until(lambda: client.call(drones.SHOW, name="mila")["status"] == "offline")
    waiting = fleet.submit("Note it, script:note", "--drone", "mila")
    assert waiting["status"] == "assigned"
    assert "offline" in waiting["reason"]
    assert wait_until(lambda: fleet.json("drone", "show", "mila")["queued"] == 1)
    mila.start()
    assert fleet.ended(waiting["id"])["status"] == "succeeded"


@pytest.mark.parametrize("count", [8, pytest.param(20, marks=pytest.mark.long)])
def test_many_orders_on_two_drones_all_succeed_side_by_side(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, remote: str, count: int
) -> None:
    fleet = start_fleet(drones=0)
    fleet.add_work(model.url, remote)
    drones = [fleet.workstation(name, "--concurrency", "2") for name in ("mila", "oka")]
    for drone in drones:
        drone.start()
    fleet.online("mila", "oka")

    with fleet.client() as client:
        requests = [{"prompt": f"Three steps, number {n}, script:three", "project": "demo"} for n in range(count)]
        ids = [client.submit(request)["id"] for request in requests]
        ended = [fleet.ended(order_id, seconds=240) for order_id in ids]

    assert [order["status"] for order in ended] == ["succeeded"] * count
    assert [problem for order in ended for problem in transcript_problems(order)] == []
    assert {order["patch"].count("\n+") for order in ended} == {ended[0]["patch"].count("\n+")}
    assert len({order["session"] for order in ended}) == count
    assert {order["drone"] for order in ended} == {"mila", "oka"}
    assert _most_at_once(fleet) == {"mila": 2, "oka": 2}


def test_a_fleet_that_is_stopped_and_started_goes_on_with_all_that_it_had(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, remote: str
) -> None:
    fleet = start_fleet()
    fleet.add_work(model.url, remote)
    fleet.online("local-1")
    running = fleet.submit("Take your time, script:slow")["id"]
    queued = fleet.submit("Note it, script:note")["id"]
    wait_until(lambda: fleet.order(running)["status"] == "running")

    assert fleet.stop() == 0
    fleet.start()

    assert fleet.ended(running)["status"] == "succeeded"
    assert fleet.ended(queued)["status"] == "succeeded"
    assert [project["slug"] for project in fleet.json("project", "ls")] == ["demo"]
    assert [drone["name"] for drone in fleet.json("drones")] == ["local-1"]
    # Events that the stopped run had not sent yet follow when its drone is back, maybe after the order has ended.
    wait_until(lambda: not transcript_problems(fleet.order(running)), seconds=60)


def _most_at_once(fleet: WholeFleet) -> dict[str, int]:
    """The most runs that were active at the same time on each drone, by its own clock.

    The control plane may learn of an end only after the next run began, if the machine is busy.
    """
    wanted = """
        SELECT drones.name, steps.drone_at, CASE steps.kind WHEN 'run_started' THEN 1 ELSE -1 END
        FROM steps JOIN runs ON runs.id = steps.run_id JOIN drones ON drones.id = runs.drone_id
        WHERE steps.kind IN ('run_started', 'run_ended') ORDER BY steps.drone_at, 3
    """
    active, most = Counter[str](), Counter[str]()
    with closing(sqlite3.connect(fleet.data / "fleet.db")) as database:
        for name, _, change in database.execute(wanted):
            active[name] += change
            most[name] = max(most[name], active[name])
    return dict(most)
