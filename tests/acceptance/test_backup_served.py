"""A control plane on PostgreSQL is saved while it works, and restored to an empty database, blob store and broker."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from shared.names import new_id
from tests.support import wait_until, warm_processes
from tests.support.broker import BrokerServer
from tests.support.postgres import PostgresServer
from tests.support.repositories import calc_project
from tests.support.transcripts import transcript_problems
from tests.support.warm_processes import FLEET
from tests.support.whole_fleet import ExternalFleet, external_fleet

pytestmark = [pytest.mark.timeout(300), pytest.mark.apart]


@pytest.fixture
def fleet(tmp_path: Path, empty_postgres_url: str, valkey: BrokerServer) -> Iterator[ExternalFleet]:
    with external_fleet(tmp_path, empty_postgres_url, valkey, tmp_path / "old") as fleet:
        yield fleet


def test_history_and_running_order_of_a_served_fleet_are_restored_to_another_database(
    fleet: ExternalFleet, model: ScriptedServer, tmp_path: Path, valkey: BrokerServer, postgres_server: PostgresServer
) -> None:
    with ExitStack() as parts:
        _serve(parts, fleet)
        fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
        fleet.workstation("mila").start()
        fleet.online("mila", seconds=60)
        before = fleet.ended(fleet.submit("Fix the test, script:fix")["id"])
        running = fleet.submit("Ten steps, script:steps")["id"]
        wait_until(lambda: fleet.order(running)["status"] == "running", seconds=60)
        saved = fleet.json("backup", str(tmp_path / "backup"), "--with-keys")
        occupied = fleet.fleet("restore", str(tmp_path / "backup"))
    shutil.rmtree(tmp_path / "old")
    valkey.empty()
    name = f"test_{new_id()}"
    postgres_server.execute(f"CREATE DATABASE {name}")
    fleet.variables["FLEET_DATABASE_URL"] = postgres_server.url(name)

    restored = fleet.json("restore", str(tmp_path / "backup"))
    with ExitStack() as parts:
        _serve(parts, fleet)
        after, continued = fleet.order(before["id"]), fleet.ended(running)
        fleet.workstation("nova").start()
        fleet.online("mila", "nova", seconds=60)
        second = fleet.ended(fleet.submit("Fix the test, script:fix", "--drone", "nova")["id"])

    assert (occupied.returncode, "E-RESTORE-TARGET" in occupied.stderr) == (4, True)
    assert restored["rows"] == saved["rows"]
    kept = ("steps", "patch", "runs", "status", "branch")
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert (continued["status"], len(continued["runs"])) == ("succeeded", 1)
    assert continued["patch"].count("\n+step ") == 10
    assert second["status"] == "succeeded"
    assert [problem for order in (continued, second) for problem in transcript_problems(order)] == []


def _serve(parts: ExitStack, fleet: ExternalFleet) -> None:
    """All roles in one process, which is killed when `parts` is closed."""
    log = parts.enter_context((fleet.root / "serve.log").open("ab"))
    part = warm_processes.popen([*FLEET, "serve"], env=fleet.environment, stdout=log, stderr=log)
    parts.callback(lambda: (part.kill(), part.wait(60)))
    wait_until(lambda: fleet.fleet("drones").returncode == 0, seconds=60, every=0.5)
