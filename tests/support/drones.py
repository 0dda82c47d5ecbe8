"""Real drones for tests: worker processes on a real Valkey, with a stand-in for the control plane."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from control_plane.broker.valkey_config import program
from drone.installation.home import DroneConfig, DroneHome
from drone.runs.directory import RunDirectory
from shared import names
from shared.work_order import WorkOrder
from tests.support import wait_until, warm_processes
from tests.support.broker import BrokerServer
from tests.support.control_stand_in import ControlPlaneStandIn, Dispatch
from tests.support.left_behind import lasts
from tests.support.runs import order_for, small_repository


@dataclass
class DroneUnderTest:
    """A registered drone and, while it runs, its processes."""

    fleet: ControlPlaneStandIn
    home: DroneHome
    config: DroneConfig
    process: subprocess.Popen[bytes] | None = None
    errors: list[Path] = field(default_factory=list)
    prefix: list[str] = field(default_factory=list)
    """The command that starts the drone's program, if any."""

    @property
    def id(self) -> str:
        return self.config.drone_id

    @property
    def worker(self) -> str:
        """Celery's name of its worker."""
        return names.worker(self.id, self.config.host, self.home.config().name)

    def start_worker(self, *options: str) -> None:
        """Start only the worker process, without the parent that restarts it."""
        self._start([sys.executable, "-m", "drone.worker", "--home", str(self.home.path), *options])

    def start(self, *, stderr: int | None = None) -> None:
        """Start the drone as `drone start` does; it writes to the file `stderr`, or to one that `stderr()` reads."""
        self._start([sys.executable, "-m", "drone.cli.main", "start"], stderr)

    def wait_consuming(self, *, seconds: float = 60) -> None:
        """Wait until the drone takes messages."""
        wait_until(self.consumes, seconds=seconds)

    def wait_subscribed(self, *, seconds: float = 60) -> None:
        """Wait until the drone's worker listens for remote control, where it checks whether to take more orders."""
        wait_until(lambda: any(int(client["psub"]) for client in self._clients()), seconds=seconds)

    def wait_warm(self, *, seconds: float = 120) -> None:
        """Wait until the model library is loaded: 5 s of CPU time, possibly in several test processes at once."""
        wait_until(lambda: any(beat.warm for beat in self.fleet.beats(self.id)), seconds=seconds)

    def terminate(self) -> None:
        """Ask it once to stop; it stops when its runs have ended."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)

    def wait(self, *, seconds: float = 60) -> int:
        """Wait until it ends by itself; return its exit code."""
        assert self.process is not None
        return self.process.wait(seconds)

    def stderr(self) -> str:
        return (self.home.path / "stderr.log").read_text()

    def said(self, text: str) -> bool:
        """Whether it has printed this."""
        return text in self.stderr()

    def stop(self, *, seconds: float = 60) -> int:
        """Stop it gracefully, with its running orders given back; return its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGQUIT)
        return self.process.wait(seconds)

    def kill(self) -> None:
        """Kill the started process, as a crash would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(60)

    def run_process(self, run_id: str) -> psutil.Process:
        """The process of a run."""
        meta = RunDirectory(self.home.run_dir(run_id)).meta()
        assert meta is not None
        assert meta.pid is not None
        return psutil.Process(meta.pid)

    def processes(self) -> list[psutil.Process]:
        """Every live process with this drone's home in its environment, including the fork server."""
        return [process for process in psutil.process_iter() if _belongs(process, str(self.home.path))]

    def log(self) -> str:
        return self.home.log_file.read_text() if self.home.log_file.exists() else ""

    def _start(self, command: list[str], stderr: int | None = None) -> None:
        environment = {**os.environ, "DRONE_HOME": str(self.home.path), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        again = self.process is not None
        self._let_go()
        errors = self.home.path / "stderr.log"
        with errors.open("ab") as kept:
            self.process = warm_processes.popen(
                [*self.prefix, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=kept if stderr is None else stderr,
                env=environment,
            )
        if again:
            # A drone that a test restarts may be shared: it outlives this test.
            lasts(self.process.pid)

    def _let_go(self) -> None:
        """End the previously started process, if any."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(60)
            if self.process.stdin is not None:
                self.process.stdin.close()

    def consumes(self) -> bool:
        """Whether one of the drone's connections is blocked waiting for a message."""
        return any(client["cmd"] == "brpop" and "b" in client["flags"] for client in self._clients())

    def _clients(self) -> list[dict[str, str]]:
        return [client for client in self.fleet.broker.redis.client_list() if client["user"] == self.id]

    def close(self) -> None:
        self._let_go()
        for process in self.processes():
            with suppress(psutil.Error):
                process.kill()


@pytest.fixture
def stand_in(valkey: BrokerServer) -> Iterator[ControlPlaneStandIn]:
    """A stand-in for the control plane on a real Valkey."""
    made = ControlPlaneStandIn(valkey)
    yield made
    made.close()


@pytest.fixture
def make_drone(stand_in: ControlPlaneStandIn, tmp_path: Path) -> Iterator[Callable[..., DroneUnderTest]]:
    """A function that registers a drone; all its processes end with the test."""
    with ExitStack() as stack:

        def make(**settings: Any) -> DroneUnderTest:
            home = DroneHome(tmp_path / f"drone-{names.new_id()}")
            drone = DroneUnderTest(stand_in, home, stand_in.register(home, **settings))
            stack.callback(drone.close)
            return drone

        yield make


@pytest.fixture(scope="session")
def busy_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """One warm drone with two slots, shared by the tests that leave it unchanged."""
    directory = tmp_path_factory.mktemp("workshop")
    with ExitStack() as stack:
        server = BrokerServer(directory / "valkey", program())
        server.start()
        stack.callback(server.close)
        fleet = ControlPlaneStandIn(server)
        stack.callback(fleet.close)
        home = DroneHome(directory / "drone")
        drone = DroneUnderTest(fleet, home, fleet.register(home, concurrency=2))
        stack.callback(drone.close)
        drone.start_worker()
        drone.wait_warm()
        yield Workshop(fleet, drone, small_repository(directory / "repository.git"))


@dataclass
class Workshop:
    """A fleet with one running drone, and a repository."""

    fleet: ControlPlaneStandIn
    drone: DroneUnderTest
    repository: Path

    def order(self, model_url: str, **changes: Any) -> WorkOrder:
        return order_for(self.drone.id, self.repository, model_url, **changes)

    def submit(self, model_url: str, **changes: Any) -> Dispatch:
        return self.fleet.dispatch(self.order(model_url, **changes))

    def printed(self, sent: Dispatch, text: str) -> bool:
        """Whether a command of the run has printed `text`."""
        return any(
            delta.run_id == sent.run_id and delta.kind == "output" and text in delta.text
            for delta in self.fleet.deltas(self.drone.id)
        )

    def run_in_beat(self, sent: Dispatch, *, ended: bool | None = None) -> bool:
        """Whether the last beat names the run, and with this `ended` unless it is None."""
        beats = self.fleet.beats(self.drone.id)
        named = [run for run in beats[-1].runs if run.run_id == sent.run_id] if beats else []
        return bool(named) and (ended is None or named[0].ended == ended)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A bare repository with one commit on main."""
    return small_repository(tmp_path / "repository.git")


def worker_below(pid: int) -> psutil.Process:
    """The worker process of a `drone start`."""
    return next(child for child in psutil.Process(pid).children() if "drone.worker" in child.cmdline())


def _belongs(process: psutil.Process, home: str) -> bool:
    with suppress(psutil.Error):
        if process.status() == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
            return False
        return process.environ().get("DRONE_HOME") == home
    return False
