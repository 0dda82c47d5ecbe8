"""The control plane on external PostgreSQL and Redis servers, its roles in separate processes, some of them twice."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until, warm_processes
from tests.support.broker import BrokerServer
from tests.support.postgres import PostgresServer
from tests.support.repositories import calc_project
from tests.support.transcripts import transcript_problems
from tests.support.warm_processes import FLEET
from tests.support.whole_fleet import ExternalFleet, external_fleet

pytestmark = [pytest.mark.campaign, pytest.mark.chaos, pytest.mark.timeout(240), pytest.mark.apart]


@pytest.fixture
def fleet(tmp_path: Path, empty_postgres_url: str, redis_server: BrokerServer) -> Iterator[ExternalFleet]:
    with external_fleet(tmp_path, empty_postgres_url, redis_server) as fleet:
        yield fleet


def test_a_supervisor_and_a_collector_that_die_are_stood_in_for_by_the_others(
    fleet: ExternalFleet, model: ScriptedServer, tmp_path: Path
) -> None:
    with ExitStack() as parts:
        first, second = _serve(parts, fleet), _serve(parts, fleet)
        _serve_role(parts, fleet, "api")
        wait_until(lambda: fleet.fleet("drones").returncode == 0, seconds=60, every=0.5)
        fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
        fleet.workstation("mila").start()
        fleet.online("mila", seconds=60)

        before = fleet.ended(fleet.submit("Fix the test, script:fix")["id"])
        _kill(*first)
        after = fleet.ended(fleet.submit("Fix the test, script:fix")["id"])

        assert [before["status"], after["status"]] == ["succeeded", "succeeded"]
        assert transcript_problems(before) + transcript_problems(after) == []
        assert [part.poll() for part in second] == [None, None]


def test_a_run_outlives_a_restart_of_the_database_and_one_of_the_broker(
    fleet: ExternalFleet,
    model: ScriptedServer,
    tmp_path: Path,
    postgres_server: PostgresServer,
    redis_server: BrokerServer,
) -> None:
    with ExitStack() as parts:
        _serve_role(parts, fleet, "all")
        wait_until(lambda: fleet.fleet("drones").returncode == 0, seconds=60, every=0.5)
        fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
        fleet.workstation("mila").start()
        fleet.online("mila", seconds=60)
        order_id = fleet.submit("Ten slow steps, script:steps")["id"]
        wait_until(lambda: fleet.order(order_id)["status"] == "running")

        postgres_server.stop()
        redis_server.stop(kill=True)
        refused = fleet.fleet("orders")
        postgres_server.start()
        redis_server.start()

        order = fleet.ended(order_id)
        assert (refused.returncode, refused.stderr.startswith("error: ")) == (1, True)
        assert "Traceback" not in refused.stderr
        assert (order["status"], order["attempt"]) == ("succeeded", 1)
        assert transcript_problems(order) == []
        assert order["patch"].count("\n+step ") == 10


def _serve(parts: ExitStack, fleet: ExternalFleet) -> tuple[subprocess.Popen[bytes], ...]:
    return tuple(_serve_role(parts, fleet, role) for role in ("supervisor", "collector"))


def _serve_role(parts: ExitStack, fleet: ExternalFleet, role: str) -> subprocess.Popen[bytes]:
    log = parts.enter_context((fleet.root / f"{role}.log").open("ab"))
    part = warm_processes.popen([*FLEET, "serve", "--role", role], env=fleet.environment, stdout=log, stderr=log)
    parts.callback(_kill, part)
    return part


def _kill(*parts: subprocess.Popen[bytes]) -> None:
    for part in parts:
        part.kill()
        part.wait(60)
