"""The parts of a fleet that faults hit one by one: a role of the control plane, a drone, the scripted model."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from drone.installation.home import DroneConfig, DroneHome
from drone.runs.directory import RunDirectory
from tests.support import warm_processes
from tests.support.machines import Island
from tests.support.warm_processes import FLEET
from tests.support.whole_fleet import WorkstationDrone


@dataclass
class Role:
    """One `fleet serve --role NAME`, which only the test restarts; copies have a dash and a number in their names.

    The role `flower` is `fleet flower`, at the address that the settings name.
    """

    name: str
    environment: Mapping[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    island: Island | None = None
    """Where it runs, if not on this machine."""
    warm: bool = True
    """Whether it starts as a copy of a warm process, whose memory is larger than its own."""

    def start(self) -> None:
        role = self.name.partition("-")[0]
        command = [*FLEET, "serve", "--role", role]
        if role == "flower":
            command = [*FLEET, role, "--port", self.environment["FLEET_FLOWER_UPSTREAM"].rpartition(":")[2]]
        with self.log.open("ab") as log:
            if self.island is None and self.warm:
                self.process = warm_processes.popen(command, env=dict(self.environment), stdout=log, stderr=log)
            else:
                whole = self.island.command(*command) if self.island else command
                self.process = subprocess.Popen(whole, env=dict(self.environment), stdout=log, stderr=log)

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def end(self, number: signal.Signals) -> None:
        """End it; it stays down until it is started."""
        process, self.process = self.process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.send_signal(number)
            process.wait(30)


@dataclass
class Drone:
    """A drone with its own home, as on a workstation."""

    station: WorkstationDrone
    last_killed: float = 0.0
    """Monotonic time."""
    home: DroneHome = field(init=False)
    config: DroneConfig = field(init=False)

    def __post_init__(self) -> None:
        self.home = DroneHome(Path(self.station.environment["DRONE_HOME"]))
        self.config = self.home.config()

    @property
    def name(self) -> str:
        return self.station.name

    @property
    def id(self) -> str:
        return self.config.drone_id

    @property
    def up(self) -> bool:
        return self.station.process is not None and self.station.process.poll() is None

    @property
    def pid(self) -> int:
        """Of the parent."""
        assert self.station.process is not None
        return self.station.process.pid

    def start(self) -> None:
        self.station.start()

    def tree(self) -> list[psutil.Process]:
        """The parent and all its descendants. It adopts orphans, so this is the complete list."""
        with suppress(psutil.Error):
            return [psutil.Process(self.pid), *psutil.Process(self.pid).children(recursive=True)] if self.up else []
        return []

    def worker(self) -> psutil.Process | None:
        """The process that consumes, holds the lease and watches the runs."""
        return next((each for each in self.tree() if "drone.worker" in _command(each)), None)

    def own_processes(self) -> list[psutil.Process]:
        """Parent, worker, fork server and runs, without the commands in their sandboxes."""
        return [each for each in self.tree() if _environ(each).get("DRONE_HOME") == str(self.home.path)]

    def run_process(self, run_id: str) -> psutil.Process | None:
        """The process of one run, if it is alive."""
        meta = RunDirectory(self.home.run_dir(run_id)).meta()
        if meta is None or meta.pid is None:
            return None
        return next((each for each in self.tree() if each.pid == meta.pid), None)

    def kill(self) -> None:
        """Kill parent, worker, fork server and runs at once, as a power cut does."""
        doomed = self.own_processes()
        for each in doomed:
            with suppress(psutil.Error):
                each.kill()
        psutil.wait_procs(doomed, timeout=5)
        if self.station.process is not None:
            self.station.process.wait(10)

    def stop(self, *, seconds: float) -> None:
        """Signal it once; after `seconds` signal it again, which ends its runs; then kill it."""
        if self.station.process is None:
            return
        for _ in range(2):
            with suppress(subprocess.TimeoutExpired):
                self.station.stop(seconds=seconds)
                return
        self.kill()


@dataclass
class ModelServer:
    """The scripted model in a separate process."""

    script: Path
    log: Path
    url: str = ""
    process: subprocess.Popen[bytes] | None = None
    island: Island | None = None
    """Where it runs, if not on this machine."""
    port: int = 0

    def start(self) -> None:
        command = [sys.executable, "-m", "drone.model.scripted.server", "--script", str(self.script)]
        command = [*(self.island.words if self.island else ()), *command, "--port", str(self.port)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=dict(os.environ))
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().decode().strip()

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(10)
            assert self.process.stdout is not None
            self.process.stdout.close()


def _command(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return list(process.cmdline())
    return []


def _environ(process: psutil.Process) -> dict[str, str]:
    with suppress(psutil.Error):
        return dict(process.environ())
    return {}
