"""A control plane in this process with real HTTP, and real drones on a real broker, for tests of outages."""

from __future__ import annotations

import json
import math
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from sqlalchemy import select

from control_plane.broker.broker import Broker
from control_plane.broker.valkey_config import program
from control_plane.collector import Collector
from control_plane.contract.declarations import projects, providers
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.contract.declarations.tokens import JoinTokenRequest
from control_plane.contract.documents.orders import OrderDocument
from control_plane.core import Core
from control_plane.core.background.timings import Timings
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.drones import Drone
from control_plane.db.engine import sqlite_url_of
from control_plane.db.orders import Dispatch
from control_plane.operations.access import tokens
from control_plane.operations.orders import reading
from control_plane.supervisor import Supervisor
from drone.installation.home import DroneHome
from drone.installation.registration import Wishes, register
from drone.model.scripted.server import ScriptedServer
from drone.runs.directory import RunDirectory
from drone.workspace import copy_owner_config
from shared import names
from tests.support import wait_until
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory, core_on
from tests.support.drones import DroneUnderTest
from tests.support.fleet import Api, api_on
from tests.support.machines import Island, new_island
from tests.support.runs import shell, small_repository
from tests.support.transcripts import transcript_problems

SCRIPTS: dict[str, list[dict[str, Any]]] = {
    "default": [{"text": "Nothing to do."}],
    "three": [*[shell(f"echo {n} >> steps.txt; sleep 0.3") for n in range(1, 4)], {"text": "Three steps."}],
    "thirty": [*[shell(f"echo {n} >> steps.txt; sleep 0.8") for n in range(1, 31)], {"text": "Thirty steps."}],
    "long": [*[shell(f"echo {n} >> steps.txt; sleep 4") for n in range(1, 31)], {"text": "Thirty steps."}],
}
GATE = "gate"
"""The file in a fleet's directory for which the second step of `script:gated` waits."""
PACE = Timings(unclaimed_after=3.0, beat_age=1.0, tail_after=2.0, resend_every=3.0, users_every=5.0, sweep=1.0)
"""The production timings, except those for which a test would only wait."""
ENDS = ("succeeded", "failed", "canceled")


@dataclass
class OutageFleet:
    """One control plane and its drones."""

    api: Api
    server: BrokerServer
    directory: Path
    timings: Timings
    parts: list[Collector | Supervisor] = field(default_factory=list)
    drones: list[DroneUnderTest] = field(default_factory=list)
    doors: list[Proxy] = field(default_factory=list)

    @property
    def core(self) -> Core:
        return self.api.core

    @property
    def broker(self) -> Broker:
        return self.core.broker

    def start(self) -> None:
        """Start collector and supervisor, under a new holder name each time."""
        holder = names.new_id()
        self.parts = [Collector(self.core, holder, self.timings), Supervisor(self.core, holder, self.timings)]
        for part in self.parts:
            part.start()

    def stop(self) -> None:
        for part in self.parts:
            part.stop()
        self.parts = []

    def add_work(self, model_url: str, repository: Path) -> None:
        self.api.client.call(
            providers.ADD,
            ProviderRequest(name="scripted", model="openai/scripted", api_base=model_url, api_key="sk-scripted"),
        )
        self.api.client.call(
            projects.ADD, ProjectRequest(slug="demo", git_url=f"file://{repository}", provider="scripted")
        )

    def drone(self, name: str, *, concurrency: int = 1, broker_address: str = "") -> DroneUnderTest:
        """A registered drone; `broker_address`: host:port of the broker, if it differs from the fleet's."""
        home = DroneHome(self.directory / name)
        token = tokens.create_join_token(self.core, system_caller(self.core), JoinTokenRequest()).token
        wishes = Wishes(url=self.api.url, token=token, name=name, concurrency=concurrency, sandbox="none")
        config = register(home, wishes, os.environ)
        if broker_address:
            credentials = home.credentials()
            parts = urlsplit(credentials.broker_url)
            place = f"{parts.username}:{parts.password}@{broker_address}"
            home.save(config, credentials.model_copy(update={"broker_url": f"redis://{place}/0"}))
        copy_owner_config(home.git_config_file, os.environ)
        made = DroneUnderTest(cast("Any", self), home, config)
        self.drones.append(made)
        return made

    def started(self, name: str, **settings: Any) -> DroneUnderTest:
        """A started drone: warm, and known to be online."""
        made = self.drone(name, **settings)
        made.start()
        self.warm(made)
        return made

    def warm(self, made: DroneUnderTest) -> None:
        """Wait until the drone runs orders without delay and is known to be online."""
        wait_until(lambda: "warmed up after" in made.log(), seconds=120)
        wait_until(lambda: self.seen(made), seconds=60)

    def seen(self, drone: DroneUnderTest) -> bool:
        """Whether a beat of the drone is stored."""
        with self.core.database.read() as db:
            return "runs" in (db.get_one(Drone, drone.id).beat or {})

    def submit(self, script: str, **wanted: Any) -> str:
        return str(self.api.submit(f"Do it, script:{script}", **wanted)["id"])

    def order(self, order_id: str) -> OrderDocument:
        return reading.show_order(self.core, system_caller(self.core), order_id)

    def kinds(self, order_id: str) -> list[str]:
        """The kinds of an order's stored steps, in order."""
        return [step.kind for step in self.order(order_id).steps]

    def run_of(self, order_id: str) -> RunDirectory:
        """The directory of the order's latest run, on the first drone's disk."""
        with self.core.database.read() as db:
            found = db.scalars(select(Dispatch.id).where(Dispatch.order_id == order_id).order_by(Dispatch.generation))
            return RunDirectory(self.drones[0].home.run_dir(list(found)[-1]))

    def results(self, order_id: str, count: int, *, seconds: float = 60) -> None:
        """Wait until this many results of the order's commands are stored."""

        def there() -> bool:
            assert self.order(order_id).status != "failed", self.order(order_id).reason
            return self.kinds(order_id).count("tool_result") >= count

        wait_until(there, seconds=seconds)

    def ended(self, order_id: str, *, seconds: float = 90) -> OrderDocument:
        return wait_until(lambda: (o := self.order(order_id)).status in ENDS and o, seconds=seconds, every=0.2)

    def whole(self, order_id: str, steps: int, *, seconds: float = 90) -> OrderDocument:
        """The ended order; it must have succeeded in one attempt, each step done once and the transcript complete."""
        order = self.ended(order_id, seconds=seconds)
        document = order.model_dump(mode="json")
        assert (order.status, order.attempt) == ("succeeded", 1), order.reason
        assert transcript_problems(document) == []
        assert added_lines(order) == [str(n) for n in range(1, steps + 1)]
        return order

    def close(self) -> None:
        for drone in self.drones:
            drone.close()
        for door in self.doors:
            door.close()
        self.stop()


def added_lines(order: OrderDocument) -> list[str]:
    """The lines that the order's patch adds."""
    lines = (order.patch or "").splitlines()
    return [line[1:] for line in lines if line.startswith("+") and not line.startswith("+++")]


@contextmanager
def outage_fleet(
    database_url: str, server: BrokerServer, directory: Path, core_factory: CoreFactory, **timings: float
) -> Iterator[OutageFleet]:
    """A running control plane with a project whose provider plays SCRIPTS; it has no drone yet."""
    gate = f"until [ -e {directory / GATE} ]; do sleep 0.1; done"
    gated = [shell("echo 1 >> steps.txt"), shell(f"{gate}; echo 2 >> steps.txt"), {"text": "Two steps."}]
    with ExitStack() as stack:
        model = stack.enter_context(ScriptedServer({**SCRIPTS, "gated": gated}))
        api = stack.enter_context(api_on(database_url, server, core_factory))
        fleet = OutageFleet(api, server, directory, replace(PACE, **timings))
        stack.callback(fleet.close)
        fleet.add_work(model.url, small_repository(directory / "demo.git"))
        fleet.start()
        yield fleet


@pytest.fixture
def outages(sqlite_url: str, valkey: BrokerServer, tmp_path: Path, core_factory: CoreFactory) -> Iterator[OutageFleet]:
    """A fleet on SQLite and Valkey, without a drone."""
    with outage_fleet(sqlite_url, valkey, tmp_path, core_factory) as fleet:
        yield fleet


@pytest.fixture(scope="session")
def oka_at_work(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[OutageFleet]:
    """A fleet with one warm drone with two slots, shared by the tests that leave it unchanged."""
    directory = tmp_path_factory.mktemp("outages")
    shutil.copy(sqlite_template, directory / "fleet.db")
    server = BrokerServer(directory / "valkey", program())
    server.start()
    url = sqlite_url_of(directory / "fleet.db")
    try:
        with outage_fleet(url, server, directory, partial(_core_in, directory)) as fleet:
            fleet.started("oka", concurrency=2)
            yield fleet
    finally:
        server.close()


def _core_in(directory: Path, url: str, **options: Any) -> Core:
    return core_on(url, directory, **options)


class Proxy:
    """A proxy to the broker that can misbehave: it passes bytes on, drops them, or changes the requested queue."""

    def __init__(self, port: int, *, host: str = "127.0.0.1") -> None:
        self._target = port
        self._listener = socket.create_server((host, 0))
        self.port = int(self._listener.getsockname()[1])
        self.change: Callable[[bytes], bytes] = bytes
        self.opened = self.changed = 0
        self._spoiled = 0.0
        """The number of the last connection to which `change` applies."""
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def spoil(self, change: Callable[[bytes], bytes], *, later_ones_too: bool = False) -> None:
        """Apply `change` to the clients' bytes on connections that are open now, or also on later ones."""
        self.change, self._spoiled = change, math.inf if later_ones_too else self.opened

    def mend(self) -> None:
        """Pass everything on unchanged."""
        self._spoiled = 0.0

    def close(self) -> None:
        for each in [self._listener, *self._sockets]:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                return
            self.opened += 1
            self._sockets += [client, server]
            threading.Thread(target=self._pass, args=(client, server, self.opened), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, None), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, number: int | None) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if number is not None and number <= self._spoiled and (changed := self.change(data)) != data:
                    self.changed += 1
                    data = changed
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def island() -> Iterator[Island]:
    """A network namespace for the test. Skips if the tests are not allowed to create one."""
    with new_island() as made:
        yield made


@contextmanager
def model_on(island: Island, directory: Path) -> Iterator[str]:
    """Run the scripted model on the island; yields its address there."""
    script = directory / "scripts.json"
    script.write_text(json.dumps(SCRIPTS))
    words = [sys.executable, "-m", "drone.model.scripted.server", "--script", str(script)]
    with subprocess.Popen(island.command(*words), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def islander(fleet: OutageFleet, island: Island, name: str, **settings: Any) -> DroneUnderTest:
    """A drone on the island; it reaches the control plane and the broker only over the link."""
    doors = [Proxy(port, host=island.bridgehead) for port in (fleet.server.port, fleet.api.port)]
    fleet.doors += doors
    made = fleet.drone(name, broker_address=f"{island.bridgehead}:{doors[0].port}", **settings)
    config = made.config.model_copy(update={"server_url": f"http://{island.bridgehead}:{doors[1].port}"})
    made.home.save(config, made.home.credentials())
    policy = fleet.directory / "config" / "dronefleet" / "policy.toml"
    policy.parent.mkdir(parents=True)
    policy.write_text("[repositories]\nfile_urls = true\n")
    made.prefix = island.command("env", f"XDG_CONFIG_HOME={fleet.directory / 'config'}")
    return made


def seconds_until(condition: Callable[[], Any], *, at_most: float) -> float:
    """The seconds until `condition` is true."""
    began = time.monotonic()
    wait_until(condition, seconds=at_most, every=0.02)
    return time.monotonic() - began
