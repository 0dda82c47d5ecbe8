"""What commands may use of the machine: memory, processes, processor time and disk.

The kernel enforces the limits where this process may create a cgroup. Elsewhere the number of processes has its own
limit (not for root), the memory is added up twice a second, and processor time cannot be limited.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import psutil

from drone.sandbox.account import is_root
from drone.sandbox.opened import opened
from drone.sandbox.resources.cgroups import Bound, Group, available
from drone.sandbox.resources.limits import ResourceLimits
from drone.sandbox.resources.usage import UsageWatch
from shared.errors import FleetFault

__all__ = ["Bound", "ResourceLimits", "Resources", "at_most", "available"]

T = TypeVar("T")
_SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"


class Resources:
    """Holds the commands of one drone or run to its owner's limits. The cgroup is made for the first command."""

    def __init__(self, limits: ResourceLimits) -> None:
        self.limits = limits
        self._lock = threading.Lock()
        self._made: Group | None = None
        self._starter: ThreadPoolExecutor | None = None

    @property
    def bounds(self) -> set[Bound]:
        """What the kernel bounds with a cgroup."""
        return self._group().bounds

    def entering(self) -> str:
        """A shell line with which the first process of a command enters the cgroup, if it was not started there.

        Raises FleetFault for a limit on processor time that cannot be enforced here.
        """
        group = self._group()
        if self.limits.cpus is not None and "cpus" not in group.bounds:
            raise FleetFault(
                "the limit on processor time of this drone cannot be enforced",
                code="E-SANDBOX",
                why="it needs a cgroup, and none can be created here",
                next="on the drone: remove cpus from [limits] in the policy file    or: drone install-service",
            )
        return group.entering()

    def spawn(self, start: Callable[[], T]) -> T:
        """Start a process, inside the cgroup if a thread can enter it.

        Entering takes the kernel some 10 ms, so one thread does it once and starts all commands. It lives as long as
        they: bubblewrap ends with the thread that started it.
        """
        group = self._group()
        if not group.takes_threads:
            return start()
        with self._lock:
            if self._starter is None:
                self._starter = ThreadPoolExecutor(1, initializer=group.enter)
        return self._starter.submit(start).result()

    def watch(self, places: Sequence[Path]) -> Callable[[int], UsageWatch]:
        """What watches over a command, given its process; `places` are its directories."""
        processes = not {"memory", "processes"} <= self.bounds
        return lambda pid: UsageWatch(self.limits, pid, places, processes=processes)

    def counted(self, inside: Sequence[str], *, alone: bool) -> list[str]:
        """The command with a limit on processes, where no cgroup has one.

        `alone`: the kernel counts them apart from the user's others, which are those of a user namespace.
        """
        if self.limits.processes is None or is_root() or "processes" in self.bounds:
            return list(inside)
        return at_most(self.limits.processes + (0 if alone else self._others), inside)

    def take_reached(self) -> tuple[str, ...]:
        """The limits that the kernel enforced since the last time, each as a sentence."""
        with self._lock:
            return self._made.take_reached() if self._made is not None else ()

    def close(self) -> None:
        """Remove the cgroup; one with processes inside stays until the next call."""
        with self._lock:
            if self._made is not None and self._made.stays_in_use():
                return
            group, self._made = self._made, None
            starter, self._starter = self._starter, None
            opened.discard(self)
        if starter is not None:
            starter.shutdown()
        if group is not None:
            group.close()

    def _group(self) -> Group:
        with self._lock:
            if self._made is None:
                self._made = Group(self.limits)
                opened.add(self)
            return self._made

    @cached_property
    def _others(self) -> int:
        """Processes and threads that the user has already."""
        user, found = os.getuid(), 0
        for process in psutil.process_iter(["uids", "num_threads"]):
            if process.info["uids"] is not None and process.info["uids"].real == user:
                found += process.info["num_threads"] or 0
        return found


def at_most(processes: int, inside: Sequence[str]) -> list[str]:
    """A command whose user may have this many processes and threads. It has no effect on root."""
    program = shutil.which("prlimit", path=_SYSTEM_PATH)
    return list(inside) if program is None else [program, f"--nproc={processes}", "--", *inside]
