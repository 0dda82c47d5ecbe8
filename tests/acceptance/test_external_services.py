"""The control plane on external PostgreSQL and Redis servers, its roles in separate processes, some of them twice."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
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

pytestmark = [pytest.mark.campaign, pytest.mark.chaos, pytest.mark.timeout(300), pytest.mark.apart]
Serve = Callable[[str], "subprocess.Popen[bytes]"]


@pytest.fixture
def fleet(tmp_path: Path, empty_postgres_url: str, redis_server: BrokerServer) -> Iterator[ExternalFleet]:
    with external_fleet(tmp_path, empty_postgres_url, redis_server) as fleet:
        yield fleet


@pytest.fixture
def serve(fleet: ExternalFleet) -> Iterator[Serve]:
    """A function that starts a role of the control plane; all of them are killed afterwards."""
    with ExitStack() as parts:

        def start(role: str) -> subprocess.Popen[bytes]:
            log = parts.enter_context((fleet.root / f"{role}.log").open("ab"))
            command = [*FLEET, "serve", "--role", role]
            part = warm_processes.popen(command, env=fleet.environment, stdout=log, stderr=log)
            parts.callback(kill, part)
            return part

        yield start


def kill(part: subprocess.Popen[bytes]) -> None:
    part.kill()
    part.wait(60)


def test_orders_outlive_a_supervisor_and_a_collector_and_a_run_also_a_restart_of_database_and_broker(
    fleet: ExternalFleet,
    serve: Serve,
    model: ScriptedServer,
    postgres_server: PostgresServer,
    redis_server: BrokerServer,
) -> None:
    first, second = ([serve(role) for role in ("supervisor", "collector")] for _ in range(2))
    serve("api")
    wait_until(lambda: fleet.fleet("drones").returncode == 0, every=0.5)
    fleet.add_work(model.url, f"file://{calc_project(fleet.root / 'calc.git')}")
    fleet.workstation("mila").start()
    before = fleet.ended(fleet.submit("Fix the test, script:fix")["id"])
    for part in first:
        kill(part)
    after = fleet.ended(fleet.submit("Fix the test, script:fix")["id"])
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
    assert [each["status"] for each in (before, after, order)] == ["succeeded"] * 3
    assert [transcript_problems(each) for each in (before, after, order)] == [[], [], []]
    assert order["attempt"] == 1
    assert order["patch"].count("\n+step ") == 10
    assert [part.poll() for part in second] == [None, None]
