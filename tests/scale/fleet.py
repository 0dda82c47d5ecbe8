"""A control plane of real processes for the crowd: PostgreSQL, Valkey, and each role started cold."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
import redis

from control_plane.broker.valkey_config import program
from control_plane.contract.client.fleet import FleetClient
from control_plane.core import Core
from control_plane.core.lookups.organizations import system_caller
from control_plane.core.settings import read_settings
from control_plane.server.assemble import open_core
from tests.chaos.parts import Role
from tests.support import wait_until
from tests.support.broker import PASSWORD, BrokerServer
from tests.support.postgres import PostgresServer, needs_postgres
from tests.support.stand_in import DroneStandIn, join_secret, register
from tests.support.whole_fleet import ExternalFleet, external_fleet

_TOKEN_USES = 10_000


@dataclass(frozen=True)
class ScaleSize:
    """How many drones and orders, and how they behave."""

    drones: int = 50
    orders: int = 300
    minutes: float = 0.0
    """How long the drones only beat before the first order."""
    own_users: bool = False
    """Each drone has a user and connections of its own; otherwise they share connections."""
    slots: int = 2
    work_s: float = 0.0
    """Seconds of one run."""
    leaving: float = 0.01
    """The part of the drones that leaves and returns, per minute."""
    collectors: int = 1
    submitters: int = 2
    """Connections over which orders are submitted."""
    sample_s: float = 5.0
    limit_s: float = 600.0
    """How long the orders may take; then those that have not ended count as lost."""


@dataclass(frozen=True)
class ProcessUse:
    """Of one process, or of PostgreSQL's together."""

    cpu_s: float
    """Processor time so far."""
    rss_mb: float
    """Of PostgreSQL: of the largest of its processes, which share most of their memory."""
    open_files: int


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

    def used(self) -> dict[str, ProcessUse]:
        """What each part has used so far, by name; PostgreSQL has a process for each connection."""
        found = {role.name: [psutil.Process(role.process.pid)] for role in self.roles if role.process is not None}
        assert self.postgres.process is not None
        server = psutil.Process(self.postgres.process.pid)
        found |= {"broker": [psutil.Process(self.broker.pid)], "postgres": [server, *server.children()]}
        return {name: _together(processes) for name, processes in {**found, "simulator": [psutil.Process()]}.items()}

    def start_roles(self, size: ScaleSize) -> None:
        """Start the roles, and wait until all of them work."""
        collectors = [f"collector-{number}" for number in range(1, size.collectors + 1)]
        for name in ("api", "supervisor", *collectors):
            role = Role(name, self.external.environment, self.external.root / f"{name}.log", warm=False)
            role.start()
            self.roles.append(role)
        wait_until(self._is_well, seconds=90)
        self.external.add_work("http://127.0.0.1:9/v1", "https://git.example/scale.git")

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
        with suppress(httpx.HTTPError):
            answer = httpx.get(f"{self.external.url}/api/v1/health", timeout=5.0, trust_env=False)
            return bool(answer.json().get("status") == "ok")
        return False


def _together(processes: list[psutil.Process]) -> ProcessUse:
    cpu, rss, files = 0.0, 0, 0
    for process in processes:
        # A connection of PostgreSQL may have been closed meanwhile: its time is that of reaped children.
        with suppress(psutil.NoSuchProcess):
            cpu += sum(process.cpu_times()[:2])
            rss = max(rss, process.memory_info().rss)
            files += process.num_fds()
    return ProcessUse(cpu + sum(processes[0].cpu_times()[2:4]), rss / 2**20, files)


@contextmanager
def scale_fleet(root: Path, size: ScaleSize) -> Iterator[ScaleFleet]:
    """A control plane below `root`, without drones; everything ends with the block."""
    broker, postgres = BrokerServer(root / "valkey", program()), PostgresServer.create(needs_postgres())
    try:
        broker.start()
        postgres.start()
        postgres.execute("CREATE DATABASE scale")
        with external_fleet(root, postgres.url("scale"), broker) as external:
            if not size.own_users:
                external.variables["FLEET_SHARED_BROKER_LOGIN"] = f"control:{PASSWORD}"
            fleet = ScaleFleet(external, _core(external.variables), broker, postgres)
            try:
                yield fleet
            finally:
                for role in fleet.roles:
                    role.end(signal.SIGKILL)
                fleet.core.broker.close()
                fleet.core.database.dispose()
    finally:
        broker.close()
        postgres.remove()


def _core(variables: Mapping[str, str]) -> Core:
    given = {name.removeprefix("FLEET_").lower(): value for name, value in variables.items()}
    known = {"database_url", "broker_url", "public_broker_url", "master_key_file", "blob_dir", "shared_broker_login"}
    return open_core(read_settings(**{name: value for name, value in given.items() if name in known}))
