"""A whole fleet as its users run it: `fleet up`, drones with separate homes, and the command lines; all real."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.declarations import drones, orders, projects, providers
from control_plane.contract.declarations.orders import OrderFilter
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.providers import ProviderRequest
from tests.support import free_port, wait_until, warm_processes
from tests.support.broker import BrokerServer
from tests.support.left_behind import lasts
from tests.support.machines import Island, Machine
from tests.support.transcripts import transcript_problems
from tests.support.warm_processes import DRONE, FLEET

Doc = dict[str, Any]
START_SECONDS = 90.0


@dataclass
class WorkstationDrone:
    """A drone registered on a workstation: a separate home, and a process that comes and goes."""

    name: str
    environment: Mapping[str, str]
    log: Path
    join_token: str = ""
    """With which it registered."""
    process: subprocess.Popen[bytes] | None = None
    machine: Machine | Island | None = None
    """None: that of the tests."""

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one `drone` command in this home."""
        return warm_processes.run([*self._program, *arguments], self.environment)

    def start(self) -> None:
        again = self.process is not None
        with self.log.open("ab") as log:
            self.process = warm_processes.popen(
                [*self._program, "start"], env=dict(self.environment), stdout=log, stderr=log, start_new_session=True
            )
        if again:
            # A drone that a test restarts may be shared: it outlives this test.
            lasts(self.process.pid)

    def stop(self, number: signal.Signals = signal.SIGQUIT, *, seconds: float = 60.0) -> int:
        """Send a signal and return the exit code; with the default signal, running orders are given back."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(seconds)

    @property
    def _program(self) -> list[str]:
        return [*(self.machine.words if self.machine else ()), *DRONE]


@dataclass
class WholeFleet:
    """`fleet up` in a directory, with the command lines for it."""

    root: Path
    options: Sequence[str] = ("--no-flower",)
    drones: int = 1
    titles: bool = False
    """Whether a model writes titles of sessions: one more order for each, which most tests do not expect."""
    process: subprocess.Popen[bytes] | None = None
    workstations: list[WorkstationDrone] = field(default_factory=list)
    settings: Mapping[str, str] = field(default_factory=dict)
    """Further variables of the control plane."""
    code: Mapping[str, str] = field(default_factory=dict)
    """Variables that make Python run another version of the project; see `tests.support.previous`."""

    @property
    def environment(self) -> dict[str, str]:
        return {
            **self.code,
            **{name: value for name, value in os.environ.items() if not name.startswith(("FLEET_", "DRONE_", "GIT_"))},
            "FLEET_HOME": str(self.root / "fleet home"),
            "FLEET_SESSION_TITLES": "true" if self.titles else "false",
            "XDG_STATE_HOME": str(self.root / "state"),
            "XDG_CONFIG_HOME": str(self.root / "config"),
            "NO_COLOR": "1",
            **self.settings,
        }

    @property
    def data(self) -> Path:
        return self.root / "fleet home" / "data"

    @property
    def log(self) -> Path:
        return self.root / "up.log"

    @property
    def url(self) -> str:
        return str(self._server_file()["url"])

    @property
    def token(self) -> str:
        """The admin's token."""
        return str(self._server_file()["token"])

    @property
    def ca_file(self) -> str:
        """The authorities that its clients trust besides the machine's."""
        return str(self._server_file().get("ca_file", ""))

    def start(self) -> None:
        """Start `fleet up` and wait until its box is printed."""
        self.root.mkdir(parents=True, exist_ok=True)
        again = self.process is not None
        begin = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = warm_processes.popen(
                [*FLEET, "up", "--port", "0", "--drones", str(self.drones), *self.options],
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if again:
            lasts(self.process.pid)
        wait_until(lambda: self._is_up(begin), seconds=START_SECONDS)

    def process_ended(self) -> bool:
        """Whether `fleet up` is gone."""
        return self.process is not None and self.process.poll() is not None

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Stop it as Ctrl-C does and return its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(60)

    def transcript_problems(self) -> list[str]:
        """The problems in all transcripts of this fleet; none if it is no longer running."""
        if self.process is None or self.process.poll() is not None:
            return []
        with self.client() as client:
            listed = client.call(orders.LIST, OrderFilter(limit=1000))
            shown = [client.call(orders.SHOW, order_id=order["id"]) for order in listed]
        return [problem for order in shown for problem in transcript_problems(order)]

    def close(self) -> None:
        """End everything that is still running."""
        for drone in self.workstations:
            if drone.process is not None:
                drone.stop()
        if self.process is not None:
            self.stop()

    def fleet(self, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run one `fleet` command, with any exit code."""
        return warm_processes.run([*FLEET, *arguments], self.environment, text)

    def json(self, *arguments: str, text: str | None = None) -> Any:
        """The document that a `fleet … --json` command prints; its exit code must be 0."""
        done = self.fleet(*arguments, "--json", text=text)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def client(self, organization: str = "default") -> FleetClient:
        """A client with the admin's token, for uses where a command line would be too slow."""
        return FleetClient(self.url, self.token, organization, ca_file=self.ca_file)

    def add_work(self, model_url: str, git_url: str, *, slug: str = "demo", provider: str = "scripted") -> None:
        """Add a provider at `model_url`, and a project for `git_url`."""
        with self.client() as client:
            client.call(providers.ADD, ProviderRequest(name=provider, model="openai/scripted", api_base=model_url))
            client.call(projects.ADD, ProjectRequest(slug=slug, git_url=git_url, provider=provider))

    def submit(self, prompt: str, *options: str, project: str = "demo") -> Doc:
        return dict(self.json("submit", prompt, "--project", project, *options))

    def order(self, order_id: str) -> Doc:
        with self.client() as client:
            return client.call(orders.SHOW, order_id=order_id)

    def ended(self, order_id: str, *, seconds: float = 120.0) -> Doc:
        """The order's document once it has ended."""
        ends = {"succeeded", "failed", "canceled"}
        with self.client() as client:
            return wait_until(
                lambda: (o := client.call(orders.SHOW, order_id=order_id))["status"] in ends and o,
                seconds=seconds,
                every=0.3,
            )

    def workstation(
        self,
        name: str,
        *options: str,
        home: Path | None = None,
        code: Mapping[str, str] | None = None,
        token_options: Sequence[str] = (),
        machine: Machine | Island | None = None,
    ) -> WorkstationDrone:
        """Register a drone as on another workstation, with a separate home; `code`: the version that it runs.

        A home that is made here is closed to a `machine` with another user.
        """
        token = self.fleet("token", "create", *token_options).stdout.strip()
        directory = home or self.root / f"workstation {name}"
        version = self.code if code is None else code
        inherited = {name: value for name, value in self.environment.items() if name not in self.code}
        environment = {**inherited, **version, "HOME": str(directory), "DRONE_HOME": str(directory / "drone")}
        directory.mkdir(parents=True, exist_ok=True)
        drone = WorkstationDrone(name, environment, self.root / f"drone-{name}.log", token, machine=machine)
        done = drone.run("register", "--url", self.url, "--token", token, "--name", name, *options)
        assert done.returncode == 0, done.stderr
        self.workstations.append(drone)
        return drone

    def online(self, *names: str, seconds: float = 60.0) -> None:
        """Wait until these drones are online."""
        wait_until(lambda: set(names) <= self._ready(), seconds=seconds, every=0.3)

    def _server_file(self) -> Doc:
        return dict(json.loads((self.root / "fleet home" / "server.json").read_text()))

    def _ready(self) -> set[str]:
        with self.client() as client:
            return {drone["name"] for drone in client.call(drones.LIST) if drone["status"] in {"online", "busy"}}

    def _is_up(self, begin: int) -> bool:
        printed = self.log.read_bytes()[begin:].decode(errors="replace")
        assert self.process is not None
        assert self.process.poll() is None, f"fleet up ended with {self.process.poll()}:\n{printed}"
        return "Dronefleet is up" in printed


@dataclass
class ExternalFleet(WholeFleet):
    """A control plane on external services; the test starts its roles."""

    variables: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, **self.variables}

    @property
    def url(self) -> str:
        return self.variables["FLEET_URL"]

    @property
    def token(self) -> str:
        return self.variables["FLEET_API_TOKEN"]

    @property
    def ca_file(self) -> str:
        return self.variables.get("FLEET_CA_FILE", "")


@contextmanager
def external_fleet(
    directory: Path, database_url: str, broker: BrokerServer, data: Path | None = None
) -> Iterator[ExternalFleet]:
    """A control plane on these servers, set up by its commands; none of its parts runs yet. `data`: key and blobs."""
    port, kept = free_port(), data or directory
    variables = {
        "FLEET_DATABASE_URL": database_url,
        "FLEET_BROKER_URL": broker.url,
        "FLEET_PUBLIC_BROKER_URL": f"redis://127.0.0.1:{broker.port}/0",
        "FLEET_MASTER_KEY_FILE": str(kept / "master.key"),
        "FLEET_BLOB_DIR": str(kept / "blobs"),
        "FLEET_PORT": str(port),
        "FLEET_URL": f"http://127.0.0.1:{port}",
    }
    fleet = ExternalFleet(directory / "external", variables=variables)
    fleet.root.mkdir()
    assert fleet.fleet("db", "upgrade").returncode == 0
    fleet.variables["FLEET_API_TOKEN"] = fleet.fleet("api-token", "create", "--bootstrap").stdout.strip()
    yield fleet
    fleet.close()
