"""What the processes of a simulation use, and how fast the list of drones answers, sampled while it runs."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

import psutil

from control_plane.declarations import drones
from tests.scale.crowd import Crowd
from tests.scale.fleet import ScaleFleet


@dataclass(frozen=True)
class ProcessUse:
    """Of one process, or of PostgreSQL's together."""

    cpu_s: float
    """Processor time so far."""
    rss_mb: float
    """Of PostgreSQL: of the largest of its processes, which share most of their memory."""
    open_files: int


@dataclass(frozen=True)
class FleetSample:
    at_s: float
    """Since the first sample."""
    ended: int
    """Orders whose runs have sent their last event."""
    board_s: float
    """How long the list of drones took over HTTP."""
    shown: dict[str, int]
    """The drones' states in that list."""
    present: int
    """The drones that were there."""
    usage: dict[str, ProcessUse]


def used_by(fleet: ScaleFleet) -> dict[str, ProcessUse]:
    return {name: _together(processes) for name, processes in fleet.processes().items()}


def _together(processes: list[psutil.Process]) -> ProcessUse:
    cpu, rss, files = 0.0, 0, 0
    for process in processes:
        try:
            times = process.cpu_times()
            cpu += times.user + times.system
            rss = max(rss, process.memory_info().rss)
            files += process.num_fds()
        except psutil.NoSuchProcess:
            # A connection of PostgreSQL that was closed meanwhile.
            continue
    # Time of connections that PostgreSQL has closed is that of reaped children.
    reaped = processes[0].cpu_times()
    return ProcessUse(cpu + reaped.children_user + reaped.children_system, rss / 2**20, files)


@dataclass
class Sampler:
    """Takes a sample every few seconds, in a thread of its own."""

    fleet: ScaleFleet
    crowd: Crowd
    every_s: float
    samples: list[FleetSample] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    _began: float = field(default_factory=time.monotonic)
    _stopping: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop after one more sample."""
        self._stopping.set()
        self._thread.join(120)

    def _run(self) -> None:
        with self.fleet.client() as client:
            last = False
            while not last:
                last = self._stopping.wait(self.every_s)
                began = time.monotonic()
                listed = client.call(drones.LIST)
                took = time.monotonic() - began
                shown = Counter(str(each["status"]) for each in listed)
                self.samples.append(
                    FleetSample(
                        at_s=round(time.monotonic() - self._began, 1),
                        ended=len(self.crowd.events),
                        board_s=round(took, 3),
                        shown=dict(shown),
                        present=self.crowd.present,
                        usage=used_by(self.fleet),
                    )
                )

    def documents(self) -> list[dict[str, Any]]:
        """The samples as they are printed."""
        return [asdict(each) for each in self.samples]
