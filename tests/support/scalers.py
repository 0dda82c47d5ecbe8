"""A stand-in for a cloud: processes on this machine in place of machines, started as an autoscaler starts those."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import warm_processes
from tests.support.warm_processes import DRONE
from tests.support.whole_fleet import WholeFleet


@dataclass
class StandInMachine:
    """One `drone start --ephemeral`, with a directory for its temporary files."""

    process: subprocess.Popen[bytes]
    temporary: Path
    log: Path

    @property
    def name(self) -> str:
        """The drone's name, once it has registered; else ''."""
        found = re.search(r"registered as (\S+)", self.log.read_text())
        return found[1] if found else ""

    @property
    def left(self) -> list[Path]:
        """What is in its directory for temporary files."""
        return list(self.temporary.iterdir())


@dataclass
class StandInScaler:
    """Follows `wanted` of a pool: starts machines, never ends one."""

    fleet: WholeFleet
    pool: str
    token: str
    root: Path
    options: tuple[str, ...] = ()
    machines: list[StandInMachine] = field(default_factory=list)
    most: int = 0
    """Of the pool's drones at the same time."""

    def step(self) -> dict[str, Any]:
        """Read the pool once and start what is missing; returns what was read."""
        shown = dict(self.fleet.json("pool", "show", self.pool))
        self.most = max(self.most, shown["drones"])
        for _ in range(shown["wanted"] - len(self.running)):
            self.start()
        return shown

    def start(self) -> StandInMachine:
        directory = self.root / f"machine {len(self.machines) + 1}"
        directory.mkdir(parents=True)
        # Not below it: the path of a socket may have about a hundred characters.
        temporary = Path(tempfile.mkdtemp(prefix="machine-"))
        log = directory / "log"
        environment = {
            **self.fleet.environment,
            "HOME": str(directory),
            "TMPDIR": str(temporary),
            "DRONE_TOKEN": self.token,
        }
        command = [*DRONE, "start", "--ephemeral", "--url", self.fleet.url, *self.options]
        with log.open("wb") as file:
            process = warm_processes.popen(command, env=environment, stdout=file, stderr=file, start_new_session=True)
        self.machines.append(StandInMachine(process, temporary, log))
        return self.machines[-1]

    @property
    def running(self) -> list[StandInMachine]:
        return [each for each in self.machines if each.process.poll() is None]

    def close(self) -> None:
        """End the machines that a failed test leaves behind, and remove their files."""
        for each in self.running:
            each.process.kill()
            each.process.wait(60)
        for each in self.machines:
            shutil.rmtree(each.temporary, ignore_errors=True)
