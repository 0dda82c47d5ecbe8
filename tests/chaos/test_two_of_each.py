"""Two API, two collector and two supervisor processes behind Caddy: any of them may be killed or cut off."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.chaos.fleet_under_load import ROLES, FleetUnderLoad, Size
from tests.chaos.parts import Role
from tests.chaos.stage import Stage, staged
from tests.support import free_port, needs, wait_until
from tests.support.documents import ROOT
from tests.support.machines import Island
from tests.support.outages import Proxy

TAKEN_OVER = 45.0
"""Seconds until an order is begun after its supervisor died: a lease of 15 s, and what starting a run takes."""


@dataclass
class Requests:
    """Asks for the orders again and again, as people and programs do, and keeps what went wrong."""

    stage: Stage
    failures: list[str] = field(default_factory=list)
    count: int = 0
    _end: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._ask, daemon=True)
        thread.start()
        yield
        self._end.set()
        thread.join(60)

    def _ask(self) -> None:
        while not self._end.wait(0.2):
            self.count += 1
            try:
                answer = self.stage.api()
            except httpx.HTTPError as error:
                self.failures.append(repr(error))
                continue
            if answer.status_code != 200:
                self.failures.append(f"{answer.status_code} {answer.text[:200]}")


@contextmanager
def caddy(directory: Path, port: int, *upstreams: str) -> Iterator[None]:
    """The proxy that we deploy, without its certificate."""
    environment = {
        **os.environ,
        "FLEET_HOSTNAME": f"http://127.0.0.1:{port}",
        "FLEET_UPSTREAM": " ".join(upstreams),
        "XDG_DATA_HOME": str(directory / "data"),
        "XDG_CONFIG_HOME": str(directory / "config"),
    }
    command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(ROOT / "deploy" / "Caddyfile")]
    directory.mkdir()
    with (
        (directory / "log").open("ab") as log,
        subprocess.Popen(command, env=environment, stdout=log, stderr=log) as it,
    ):
        yield
        it.terminate()


@pytest.fixture
def stage(tmp_path: Path, island: Island) -> Iterator[Stage]:
    """A fleet under load behind Caddy; the second process of each role runs on an island."""
    needs("caddy")
    front, first, second = free_port(), free_port(), free_port()
    fleet = FleetUnderLoad(tmp_path / "fleet", Size(drones=2, slots=2, step_seconds=0.4), f"http://127.0.0.1:{front}")
    fleet.api_port = first
    fleet.variables = {"FLEET_ALLOW_FILE_URLS": "true"}
    with caddy(tmp_path / "caddy", front, f"127.0.0.1:{first}", f"{island.shore}:{second}"), staged(fleet) as made:
        add_copies(fleet, island, second)
        yield made


def add_copies(fleet: FleetUnderLoad, island: Island, port: int) -> None:
    """Start a second process of each role on the island, and wait until Caddy sends requests there, too."""
    assert fleet.postgres.port is not None
    database, broker = (Proxy(each, host=island.bridgehead) for each in (fleet.postgres.port, fleet.broker.port))
    there = {
        **fleet.roles["api"].environment,
        "FLEET_DATABASE_URL": f"postgresql://postgres@{island.bridgehead}:{database.port}/chaos",
        "FLEET_BROKER_URL": fleet.broker.url.replace(
            f"127.0.0.1:{fleet.broker.port}", f"{island.bridgehead}:{broker.port}"
        ),
        "FLEET_HOST": island.shore,
        "FLEET_PORT": str(port),
    }
    for name in ROLES:
        fleet.roles[f"{name}-2"] = Role(f"{name}-2", there, fleet.root / f"{name}-2.log", island=island)
        fleet.roles[f"{name}-2"].start()
    wait_until(lambda: caddy_uses(fleet, f"{island.shore}:{port}", 0), seconds=90)


def log_of_caddy(fleet: FleetUnderLoad) -> Path:
    return fleet.root.with_name("caddy") / "log"


def caddy_uses(fleet: FleetUnderLoad, upstream: str, begin: int) -> bool:
    """Whether Caddy has found this API process well since its log had so many bytes."""
    return f'"host is up","host":"{upstream}"' in log_of_caddy(fleet).read_text()[begin:]


def begun(stage: Stage) -> None:
    """Submit an order, and wait until its run has begun."""
    before = set(stage.facts().orders)
    stage.submit(1)
    (new,) = set(stage.facts().orders) - before
    wait_until(lambda: any(run.order_id == new for run in stage.facts().runs.values()), seconds=TAKEN_OVER)


@pytest.mark.chaos
@pytest.mark.long
@pytest.mark.timeout(900)
def test_any_one_of_two_may_be_killed_or_cut_off(stage: Stage, island: Island) -> None:
    requests = Requests(stage)
    with requests.running():
        stage.submit(4)
        stage.running(2)
        for name in ROLES:
            stage.end_roles([name])
            begun(stage)
            stage.start_roles([name])

        # Now those on the island do everything, and hold all leases when they are cut off.
        stage.end_roles(ROLES)
        begun(stage)
        begin = log_of_caddy(stage.fleet).stat().st_size
        stage.start_roles(ROLES)
        # A request that is under way when its process is cut off fails: from here on, Caddy sends them to the other.
        wait_until(lambda: caddy_uses(stage.fleet, f"127.0.0.1:{stage.fleet.api_port}", begin), seconds=60)
        with island.cut_off(silently=True):
            begun(stage)
            begun(stage)
        begun(stage)
        assert stage.all_succeeded().lost_runs == 0
    assert (requests.failures, requests.count > 50) == ([], True)
