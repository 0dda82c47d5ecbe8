"""The previous version's own code, run against this one: drones, control plane and database."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import SCRIPTS, shell
from tests.support import wait_until
from tests.support.previous import previous
from tests.support.repositories import calc_project
from tests.support.transcripts import transcript_problems
from tests.support.whole_fleet import WholeFleet

__all__ = ["previous"]
pytestmark = [pytest.mark.timeout(300), pytest.mark.long]
LONG = [shell("echo begun; sleep 20; echo done > slow.txt"), {"text": "Done, slowly."}]


@pytest.fixture
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer({**SCRIPTS, "long": LONG}) as server:
        yield server


@pytest.fixture
def start_fleet(tmp_path: Path) -> Iterator[Callable[..., WholeFleet]]:
    """A function that starts a fleet without drones, of the version in `code`."""
    started: list[WholeFleet] = []

    def start(code: Mapping[str, str]) -> WholeFleet:
        fleet = WholeFleet(tmp_path / "fleet", drones=0, code=code)
        started.append(fleet)
        fleet.start()
        return fleet

    yield start
    for fleet in started:
        fleet.close()


@pytest.fixture
def remote(tmp_path: Path) -> str:
    return f"file://{calc_project(tmp_path / 'calc.git')}"


def test_this_drone_carries_an_order_out_for_the_control_plane_of_the_previous_version(
    start_fleet: Callable[..., WholeFleet], previous: dict[str, str], model: ScriptedServer, remote: str
) -> None:
    fleet = start_fleet(previous)
    fleet.add_work(model.url, remote)
    drone = fleet.workstation("mila", code={})
    drone.start()
    fleet.online("mila")
    order = fleet.ended(fleet.submit("Fix it, script:fix")["id"])
    assert (order["status"], order["exit_status"], order["pushed"]) == ("succeeded", "submitted", True)
    assert "return a + b" in order["patch"]
    assert transcript_problems(order) == []


def test_the_control_plane_is_upgraded_under_a_drone_of_the_previous_version_that_is_at_work(
    start_fleet: Callable[..., WholeFleet], previous: dict[str, str], model: ScriptedServer, remote: str
) -> None:
    fleet = start_fleet(previous)
    fleet.add_work(model.url, remote)
    drone = fleet.workstation("mila")
    drone.start()
    fleet.online("mila")
    running = fleet.submit("Take your time, script:long")["id"]
    waiting = fleet.submit("Note it, script:note")["id"]
    wait_until(lambda: fleet.order(running)["status"] == "running")
    wait_until(lambda: "tool_call" in [step["kind"] for step in fleet.order(running)["steps"]])

    assert fleet.stop(signal.SIGTERM) == 0
    fleet.code = {
        "FLEET_DATABASE_URL": f"sqlite:///{fleet.data / 'fleet.db'}",
        "FLEET_BROKER_URL": "redis://127.0.0.1:1/0",
        "FLEET_BLOB_DIR": str(fleet.data / "blobs"),
    }
    upgraded = fleet.json("db", "upgrade")
    fleet.code = {}
    fleet.start()

    ended = [fleet.ended(order_id) for order_id in (running, waiting)]
    assert [(order["status"], order["attempt"]) for order in ended] == [("succeeded", 1)] * 2
    assert [problem for order in ended for problem in transcript_problems(order)] == []
    assert upgraded["applied"]
