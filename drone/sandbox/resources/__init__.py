"""What commands may use of the machine: memory, processes, processor time and disk.

The kernel enforces the limits where this process may create a cgroup. Elsewhere the number of processes has its own
limit (not for commands of root), the memory is added up twice a second, and processor time cannot be limited.
"""

from __future__ import annotations

import resource
import shutil
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import psutil

from drone.sandbox.opened import opened
from drone.sandbox.resources.cgroups import Bound, Group, available
from drone.sandbox.resources.limit_values import ResourceLimits
from drone.sandbox.resources.usage import UsageWatch
from shared.errors import FleetFault

__all__ = ["Bound", "ResourceLimits", "Resources", "at_most", "available"]

T = TypeVar("T")
ROOT = 0
_SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"


class Resources:
    """Holds the commands of one drone or run to its owner's limits. The cgroup is made for the first command."""

    def __init__(self, limits: ResourceLimits) -> None:
        self.limits = limits
        self._lock = threading.Lock()
        self._made: Group | None = None
        self._starter: ThreadPoolExecutor | None = None
        self._before: int | None = None

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

        Entering takes the kernel some 10 ms, so one thread does it once and starts all. It lives as long as they:
        bubblewrap ends with the thread that started it.
        """
        with self._lock:
            if self._starter is None:
                group = self._group_locked()
                enter = group.enter if group.takes_threads else None
                self._starter = ThreadPoolExecutor(1, initializer=enter)
        return self._starter.submit(start).result()

    def watch(self, places: Sequence[Path]) -> Callable[[int], UsageWatch]:
        """What watches over a command, given its process; `places` are its directories."""
        processes = not {"memory", "processes"} <= self.bounds
        return lambda pid: UsageWatch(self.limits, pid, places, processes=processes)

    def counted(self, inside: Sequence[str], user: int, *, alone: bool, own: int = 0) -> list[str]:
        """A command of this user with a limit on processes, where no cgroup has one; root's own have none.

        `alone`: the kernel counts them apart from the user's others, which are those of a user namespace. `own`: how
        many of them are not the command's.
        """
        if self.limits.processes is None or user == ROOT or "processes" in self.bounds:
            return list(inside)
        return at_most(self.limits.processes + own + (0 if alone else self._others(user)), inside)

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
            opened.pop(self, None)
        if starter is not None:
            starter.shutdown()
        if group is not None:
            group.close()

    def _group(self) -> Group:
        with self._lock:
            return self._group_locked()

    def _group_locked(self) -> Group:
        if self._made is None:
            self._made = Group(self.limits)
            opened[self] = None
        return self._made

    def _others(self, user: int) -> int:
        """Processes and threads that the user had before the first command of this run."""
        if self._before is None:
            infos = (process.info for process in psutil.process_iter(["uids", "num_threads"]))
            own = (info for info in infos if info["uids"] is not None and info["uids"].real == user)
            self._before = sum(info["num_threads"] or 0 for info in own)
        return self._before


def at_most(processes: int, inside: Sequence[str]) -> list[str]:
    """A command whose user may have this many processes and threads, or fewer if the drone's own limit is lower.

    It has no effect on root.
    """
    program, hard = shutil.which("prlimit", path=_SYSTEM_PATH), resource.getrlimit(resource.RLIMIT_NPROC)[1]
    most = processes if hard == resource.RLIM_INFINITY else min(processes, hard)
    return list(inside) if program is None else [program, f"--nproc={most}", "--", *inside]
