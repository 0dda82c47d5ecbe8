"""A control plane of real processes for the crowd: PostgreSQL, Valkey, and each role started cold."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
import redis

from control_plane.assemble import open_core
from control_plane.broker.valkey_config import program
from control_plane.client.fleet import FleetClient
from control_plane.core import Core
from control_plane.core.settings import read_settings
from control_plane.lookups.organizations import system_caller
from tests.chaos.parts import Role
from tests.scale.crowd import Crowd
from tests.scale.size import ScaleSize
from tests.support import wait_until
from tests.support.broker import PASSWORD, BrokerServer
from tests.support.postgres import PostgresServer, needs_postgres
from tests.support.stand_in import DroneStandIn, join_secret, register
from tests.support.whole_fleet import ExternalFleet, external_fleet

_TOKEN_USES = 10_000


@dataclass
class ScaleFleet:
    """The running control plane, and this process's own view of its database."""

    external: ExternalFleet
    core: Core
    broker: BrokerServer
    postgres: PostgresServer
    roles: list[Role] = field(default_factory=list)

    def client(self) -> FleetClient:
        """A client of the HTTP interface, with the admin's token."""
        return FleetClient(self.external.url, self.external.token, timeout_s=60.0)

    def processes(self) -> dict[str, list[psutil.Process]]:
        """What is measured, by name; PostgreSQL has a process for each connection."""
        found = {role.name: [psutil.Process(role.process.pid)] for role in self.roles if role.process is not None}
        found["broker"] = [psutil.Process(self.broker.pid)]
        assert self.postgres.process is not None
        server = psutil.Process(self.postgres.process.pid)
        return {**found, "postgres": [server, *server.children()], "simulator": [psutil.Process()]}

    def start_roles(self, size: ScaleSize) -> None:
        """Start the roles, and wait until all of them work."""
        collectors = [f"collector-{number}" for number in range(1, size.collectors + 1)]
        for name in ("api", "supervisor", *collectors):
            role = Role(name, self.external.environment, self.external.root / f"{name}.log", warm=False)
            role.start()
            self.roles.append(role)
        wait_until(self._is_well, seconds=90)
        self.external.add_work("http://127.0.0.1:9/v1", "https://git.example/scale.git")

    def crowd(self, size: ScaleSize) -> Crowd:
        """The registered drones; none has started yet."""
        return Crowd(self.drones(size), work_s=size.work_s, leaving_per_minute=size.leaving, own=size.own_users)

    def drones(self, size: ScaleSize) -> list[DroneStandIn]:
        """New drones, registered, each with nothing that moves it."""
        caller, secret = system_caller(self.core), ""
        shared = None if size.own_users else redis.Redis.from_url(self.broker.url, decode_responses=True)
        drones: list[DroneStandIn] = []
        for number in range(size.drones):
            if number % _TOKEN_USES == 0:
                secret = join_secret(self.core, caller, uses=min(size.drones, _TOKEN_USES))
            name = f"drone-{number}"
            drones.append(register(self.core, secret, name, connection=shared, concurrency=size.slots))
        return drones

    def _is_well(self) -> bool:
        try:
            answer = httpx.get(f"{self.external.url}/api/v1/health", timeout=5.0, trust_env=False)
        except httpx.HTTPError:
            return False
        return bool(answer.json().get("status") == "ok")


@contextmanager
def scale_fleet(root: Path, size: ScaleSize) -> Iterator[ScaleFleet]:
    """A control plane below `root`, without drones; everything ends with the block."""
    broker, postgres = BrokerServer(root / "valkey", program()), PostgresServer.create(needs_postgres())
    try:
        broker.start()
        postgres.start()
        postgres.execute("CREATE DATABASE scale")
        with external_fleet(root, postgres.url("scale"), broker) as external:
            yield from _with_core(external, broker, postgres, size)
    finally:
        broker.close()
        postgres.remove()


def _with_core(
    external: ExternalFleet, broker: BrokerServer, postgres: PostgresServer, size: ScaleSize
) -> Iterator[ScaleFleet]:
    if not size.own_users:
        external.variables["FLEET_SHARED_BROKER_LOGIN"] = f"control:{PASSWORD}"
    given = {name.removeprefix("FLEET_").lower(): value for name, value in external.variables.items()}
    known = {"database_url", "broker_url", "public_broker_url", "master_key_file", "blob_dir", "shared_broker_login"}
    core = open_core(read_settings(**{name: value for name, value in given.items() if name in known}))
    fleet = ScaleFleet(external, core, broker, postgres)
    try:
        yield fleet
    finally:
        for role in fleet.roles:
            role.end(signal.SIGKILL)
        core.broker.close()
        core.database.dispose()
