"""Watches what a command uses, where the kernel does not: memory and processes without a cgroup, and the disk."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from drone.processes.tree import below, find
from drone.sandbox.resources.limit_values import ResourceLimits, readable

PROCESSES_S = 0.5
DISK_S = 2.0
"""How often to look, at most; a look that takes long is repeated more rarely."""
REST = 20.0
"""Times the duration of a look."""
SLICE_S = 0.005
"""How long one step of measuring a directory may take: the caller has other things to watch."""
FREE_SHARE = 0.5
"""How much of the free disk one command may fill, unless the owner's policy says otherwise."""
FULL_SHARE = 0.1
"""What is left of the free disk when it is too late to end the command for it."""


class UsageWatch:
    """What one command uses. Call it often: it returns a sentence when the command must end, else an empty text."""

    def __init__(self, limits: ResourceLimits, pid: int, places: Sequence[Path], *, processes: bool) -> None:
        """`places`: what counts as the run's disk. `processes`: watch memory and processes too."""
        disk = _DiskWritten(places) if limits.disk is None else _DiskHeld(limits.disk, places)
        self._looks: list[Callable[[], str]] = [disk]
        if processes:
            self._looks.append(_Processes(limits, pid))

    def __call__(self) -> str:
        return next(filter(None, (look() for look in self._looks)), "")


@dataclass
class _Pace:
    """Says when the next look is due."""

    seconds: float
    due: float = 0.0

    def rest(self, spent: float) -> None:
        self.due = time.monotonic() + max(self.seconds, REST * spent)


class _DirectorySize:
    """Measures directories in small steps."""

    def __init__(self, places: Sequence[Path], since: float = 0.0) -> None:
        """`since`: only files that changed after this time count."""
        self._places, self._since, self._pace = places, since, _Pace(DISK_S)
        self._walk: Iterator[tuple[int, float]] | None = None
        self._total, self._spent = 0, 0.0

    def step(self) -> int | None:
        """The bytes that files below occupy, when a measurement ends with this step."""
        began = time.monotonic()
        if self._walk is None:
            if began < self._pace.due:
                return None
            self._walk, self._total, self._spent = _sizes(self._places), 0, 0.0
        for size, changed in self._walk:
            self._total += size if changed >= self._since else 0
            if time.monotonic() - began > SLICE_S:
                self._spent += SLICE_S
                return None
        self._walk = None
        self._pace.rest(self._spent)
        return self._total


class _DiskHeld:
    """The size of the workspace and of the session's home and /tmp: at most the owner's limit."""

    def __init__(self, limit: int, places: Sequence[Path]) -> None:
        self._limit, self._measured = limit, _DirectorySize(places)
        self._first: int | None = None

    def __call__(self) -> str:
        total = self._measured.step()
        if total is None:
            return ""
        # The first measurement is of what earlier commands left: one that removes some of it must be able to.
        if self._first is None:
            self._first = total
        if total <= self._limit or total <= self._first:
            return ""
        return f"the workspace, with home and /tmp, holds {readable(total)} of {readable(self._limit)} allowed"


class _DiskWritten:
    """What the command itself wrote, measured only when the disk loses space: at most a share of what was free."""

    def __init__(self, places: Sequence[Path]) -> None:
        self._place, self._measured = places[0], _DirectorySize(places, since=time.time())
        self._free = self._free_now() or 0

    def __call__(self) -> str:
        most, left = self._free * FREE_SHARE, self._free_now()
        if left is None or left > self._free - most:
            return ""
        written = self._measured.step()
        # A full disk refuses more anyway, and the command may remove what it wrote.
        if written is None or written < most or left < self._free * FULL_SHARE:
            return ""
        return f"it wrote {readable(written)} and left {readable(left)} on the drone's disk"

    def _free_now(self) -> int | None:
        try:
            stat = os.statvfs(self._place)
        except OSError:  # the command removed its own workspace
            return None
        return stat.f_bavail * stat.f_frsize


def _sizes(places: Sequence[Path]) -> Iterator[tuple[int, float]]:
    """What each file below occupies and when it changed, links not followed."""
    todo = [os.fspath(place) for place in places]
    while todo:
        try:
            entries = os.scandir(todo.pop())
        except OSError:  # removed meanwhile
            continue
        with entries:
            for entry in entries:
                with suppress(OSError):
                    stat = entry.stat(follow_symlinks=False)
                    yield stat.st_blocks * 512, stat.st_ctime
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)


class _Processes:
    """The number of a command's processes, and their memory."""

    def __init__(self, limits: ResourceLimits, pid: int) -> None:
        self._limits, self._root, self._pace = limits, find(pid), _Pace(PROCESSES_S)

    def __call__(self) -> str:
        began = time.monotonic()
        if self._root is None or began < self._pace.due:
            return ""
        found = below(self._root)
        why = self._judged(found)
        self._pace.rest(time.monotonic() - began)
        return why

    def _judged(self, processes: set[psutil.Process]) -> str:
        most, memory = self._limits.processes, self._limits.memory
        if most is not None and len(processes) > most:
            return f"it had {len(processes):,} processes of {most:,} allowed"
        # The first sum counts shared pages once for each process: it is quick, and too high.
        if memory is not None and sum(map(_resident, processes)) > memory:
            used = sum(map(_proportional, processes))
            if used > memory:
                return f"its processes used {readable(used)} of {readable(memory)} of memory allowed"
        return ""


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _proportional(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except (psutil.Error, AttributeError):  # another system than Linux does not know the share
        return _resident(process)
