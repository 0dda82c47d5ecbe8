"""A whole fleet whose parts can be hit one by one: PostgreSQL, Valkey, three roles, drones, a model, a git remote."""

from __future__ import annotations

import json
import os
import signal
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import redis

from control_plane.broker.valkey_config import program
from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.declarations import budgets, prices
from control_plane.contract.declarations.budgets import BudgetRequest
from control_plane.contract.declarations.prices import PriceRequest
from control_plane.db.engine import Database
from drone.processes.tree import MARK
from tests.chaos.parts import Drone, ModelServer, Role
from tests.chaos.witness import Witness
from tests.support import free_port, wait_until
from tests.support.broker import BrokerServer
from tests.support.machines import Island
from tests.support.metrics import TOKEN
from tests.support.postgres import PostgresServer, needs_postgres
from tests.support.repositories import bare_remote, git
from tests.support.whole_fleet import ExternalFleet, WorkstationDrone

NUMBERS = "numbers.txt"
STEPS = 10
BUDGET_USD = 1_000.0
ROLES = ("api", "collector", "supervisor")


@dataclass(frozen=True)
class Size:
    """The size of the fleet and of its load."""

    drones: int = 4
    slots: int = 2
    """Concurrent runs per drone."""
    orders: int = 200
    step_seconds: float = 0.6
    """The model's response time."""
    max_attempts: int = 20


@dataclass
class FleetUnderLoad:
    """A fleet below one directory. `start` returns when all drones are online; `close` leaves no process behind."""

    root: Path
    size: Size
    front: str | None = None
    """The address under which drones and people reach the API, if something is in front of it."""
    api_port: int = field(default_factory=free_port)
    variables: dict[str, str] = field(default_factory=dict)
    """Further settings of the control plane."""
    make_broker: Callable[[Path], BrokerServer] = lambda directory: BrokerServer(directory, program())
    make_postgres: Callable[[Path], PostgresServer] = PostgresServer.create
    """From the wheel's directory."""
    machines: Sequence[Island] = ()
    """Where each drone runs, if not on this machine."""
    drone_options: tuple[str, ...] = ()
    """Of `drone register`."""
    flower: bool = False
    """Whether Flower runs too, as one more role."""
    roles: dict[str, Role] = field(default_factory=dict)
    drones: dict[str, Drone] = field(default_factory=dict)
    postgres: PostgresServer = field(init=False)
    broker: BrokerServer = field(init=False)
    model: ModelServer = field(init=False)
    database: Database = field(init=False)
    witness: Witness = field(init=False)
    _fleet: ExternalFleet = field(init=False)

    def start(self) -> None:
        self._start_services()
        self._set_up()
        for role in (*ROLES, "flower") if self.flower else ROLES:
            self.roles[role] = Role(role, self._fleet.environment, self.root / f"{role}.log")
            self.roles[role].start()
        wait_until(lambda: self.health().get("status") == "ok", seconds=90, every=0.2)
        self._fleet.add_work(self.model.url, f"file://{self.remote}")
        self._set_money()
        for number in range(1, self.size.drones + 1):
            station = self.register(f"drone-{number}", self.machines[number - 1] if self.machines else None)
            self.drones[station.name] = Drone(station)
            self.drones[station.name].start()
        self._fleet.online(*self.drones, seconds=90)

    def register(self, name: str, machine: Island | None = None) -> WorkstationDrone:
        """A new drone, which is not started."""
        options = ("--concurrency", str(self.size.slots), *self.drone_options)
        return self._fleet.workstation(name, *options, machine=machine)

    def _set_money(self) -> None:
        """A price and a budget, so that every call needs a reservation; the budget suffices for all orders."""
        with self.client() as client:
            client.call(prices.SET, PriceRequest(input_usd=1.0, output_usd=2.0), model="openai/scripted")
            client.call(budgets.SET, BudgetRequest(usd=BUDGET_USD, per="total"), kind="organization", name="default")

    @property
    def remote(self) -> Path:
        """The bare repository; faults move it away and back."""
        return self.root / "remote" / "numbers.git"

    @property
    def slots(self) -> int:
        return self.size.drones * self.size.slots

    @property
    def url(self) -> str:
        """That of the API, for drones and users."""
        return self._fleet.url

    @property
    def token(self) -> str:
        """The admin's."""
        return self._fleet.token

    def client(self, *, timeout_s: float = 10.0) -> FleetClient:
        """A client with the admin's token."""
        return FleetClient(self._fleet.url, self.token, timeout_s=timeout_s, ca_file=self._fleet.ca_file)

    def get(self, path: str, token: str = "", *, timeout_s: float = 30.0, **headers: str) -> httpx.Response:
        """The API's answer to anybody, or to whoever has the token."""
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.get(f"{self._fleet.url}{path}", headers=headers, timeout=timeout_s, trust_env=False, verify=False)

    def answers(self, path: str) -> bool:
        """Whether the admin gets what is there."""
        with suppress(httpx.HTTPError):
            return self.get(path, self.token, timeout_s=5.0).is_success
        return False

    def health(self) -> dict[str, Any]:
        """The API's health document, with any status code; empty if it does not answer within 2 s."""
        with suppress(httpx.HTTPError, ValueError):
            return dict(self.get("/api/v1/health", timeout_s=2.0).json())
        return {}

    def consuming(self) -> set[str]:
        """Names of the drones with a connection that is blocked waiting for a message."""
        try:
            clients = self.broker.redis.client_list()
        except redis.RedisError:
            return set()
        users = {each["user"] for each in clients if each["cmd"] == "brpop" and "b" in each["flags"]}
        return {name for name, drone in self.drones.items() if drone.id in users}

    def git(self, *words: str) -> str:
        """Run git in the remote."""
        return git(self.remote, *words)

    # --- the end ---------------------------------------------------------------------------

    def start_again_what_ended(self) -> None:
        """Restart ended roles, as a service manager does, including those that failed to start."""
        for role in self.roles.values():
            if role.process is not None and role.process.poll() is not None:
                role.start()

    def stop_drones(self) -> None:
        """Signal all drones first, so that they end concurrently."""
        for drone in self.drones.values():
            if drone.up and drone.station.process is not None:
                drone.station.process.terminate()
        for drone in self.drones.values():
            drone.stop(seconds=30)

    def close(self) -> None:
        """End everything that is still running, even if `start` failed halfway."""
        for drone in self.drones.values():
            drone.kill()
        for role in self.roles.values():
            role.end(signal.SIGKILL)
        for name, end in (("model", "stop"), ("broker", "close"), ("database", "dispose"), ("postgres", "remove")):
            if hasattr(self, name):
                getattr(getattr(self, name), end)()
        for pid in self.survivors():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def survivors(self, marks: tuple[str, ...] = ()) -> list[int]:
        """Live processes of drones, and those of commands whose mark starts with one of `marks`."""
        homes = {str(drone.home.path) for drone in self.drones.values()}
        return [process.pid for process in psutil.process_iter() if _is_of(process, homes, marks)]

    def commands_by_run(self) -> dict[str, list[int]]:
        """Live processes of commands, by the run that started them."""
        found: dict[str, list[int]] = defaultdict(list)
        for process in psutil.process_iter():
            owner = _mark(process).split(".")
            if len(owner) >= 2:
                found[owner[1]].append(process.pid)
        return found

    # --- the beginning ---------------------------------------------------------------------

    def _start_services(self) -> None:
        wheel = needs_postgres()
        self.root.mkdir(parents=True, exist_ok=True)
        self.broker = self.make_broker(self.root / "valkey")
        self.broker.start()
        self.postgres = self.make_postgres(wheel)
        if self.front:
            self.postgres.port = free_port()
        self.postgres.start()
        self.postgres.execute("CREATE DATABASE chaos")
        script = self.root / "script.json"
        refused = [{"status": 401, "error": "Incorrect API key provided"}]
        script.write_text(json.dumps({"count": counting_script(self.size.step_seconds), "refused": refused}))
        self.model = ModelServer(script, self.root / "model.log")
        self.model.start()
        bare_remote(self.remote, {"README.md": "# numbers\n", ".gitignore": "*.cache\n"})
        self.git("config", "core.logAllRefUpdates", "always")

    def _set_up(self) -> None:
        port = self.api_port
        variables = {
            "FLEET_DATABASE_URL": self.postgres.url("chaos"),
            "FLEET_BROKER_URL": self.broker.url,
            "FLEET_PUBLIC_BROKER_URL": self.broker.public_url,
            "FLEET_MASTER_KEY_FILE": str(self.root / "master.key"),
            "FLEET_BLOB_DIR": str(self.root / "blobs"),
            "FLEET_PORT": str(port),
            "FLEET_URL": self.front or f"http://127.0.0.1:{port}",
            "FLEET_METRICS_TOKEN": TOKEN,
            **(_flower_settings() if self.flower else {}),
            **self.variables,
        }
        self._fleet = ExternalFleet(self.root / "external", variables=variables)
        self._fleet.root.mkdir()
        done = self._fleet.fleet("db", "upgrade")
        assert done.returncode == 0, done.stderr
        self.database = Database(variables["FLEET_DATABASE_URL"])
        self.witness = Witness(self.database)
        self.witness.install()
        self._fleet.variables["FLEET_API_TOKEN"] = self._fleet.fleet(
            "api-token", "create", "--bootstrap"
        ).stdout.strip()


def _flower_settings() -> dict[str, str]:
    return {"FLEET_FLOWER_UPSTREAM": f"http://127.0.0.1:{free_port()}", "FLEET_FLOWER_PASSWORD": "flowers-password"}


def counting_script(step_seconds: float) -> list[dict[str, Any]]:
    """Ten steps that each append their number to a file, and a submission."""
    steps = [
        {
            "text": f"Number {number}.",
            "tool_calls": [{"name": "shell", "arguments": {"command": f"echo {number} >> {NUMBERS}"}}],
            "delay_s": step_seconds,
        }
        for number in range(1, STEPS + 1)
    ]
    return [*steps, {"tool_calls": [{"name": "submit", "arguments": {"summary": "All ten are there."}}]}]


def _mark(process: psutil.Process) -> str:
    """A command's mark: `<boot>.<run>.<command>`; empty if there is none."""
    with suppress(psutil.Error):
        if process.status() != psutil.STATUS_ZOMBIE:
            return str(process.environ().get(MARK, ""))
    return ""


def _is_of(process: psutil.Process, homes: set[str], marks: tuple[str, ...]) -> bool:
    with suppress(psutil.Error):
        if process.status() == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
            return False
        mark = _mark(process)
        return process.environ().get("DRONE_HOME") in homes or any(mark.startswith(f"{each}.") for each in marks)
    return False
