"""The cgroup of a run's commands: the kernel's own bound on memory, processes and processor time.

Version 1 needs root. Version 2 needs a group whose parent this process may write: systemd gives one to a service with
`Delegate=` and `DelegateSubgroup=`, which puts the drone into a leaf below it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from drone.sandbox.resources.limit_values import ResourceLimits, readable

PREFIX = "dronefleet-"
Bound = Literal["memory", "processes", "cpus"]
_CONTROLLERS: Mapping[str, Bound] = {"memory": "memory", "pids": "processes", "cpu": "cpus"}
_PERIOD_US = 100_000
_REMOVAL_S = 2.0
_ENDING_S = 0.3


@dataclass(frozen=True)
class EventCount:
    """An event that the kernel counts: a line `name number` of a file."""

    file: Path
    name: str
    sentence: str
    """What to say when the number has grown."""

    def value(self) -> int:
        with contextlib.suppress(OSError):
            for line in self.file.read_text().splitlines():
                name, _, number = line.partition(" ")
                if name == self.name:
                    return int(number)
        return 0


class Group:
    """A cgroup in each hierarchy where one can be created. `bounds` says what it bounds."""

    def __init__(self, limits: ResourceLimits) -> None:
        self._limits = limits
        self._directories: list[Path] = []
        self._counters: dict[EventCount, int] = {}
        self.bounds: set[Bound] = set()
        self._name = f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        for parent, controllers in _parents():
            with contextlib.suppress(OSError):
                self._make(parent / self._name, controllers)

    def entering(self) -> str:
        """A shell line with which a process enters, unless it is inside. It ends one that cannot enter."""
        if not self._directories:
            return ":"
        enter = "; ".join(f"echo $$ > {shlex.quote(str(each))}/cgroup.procs || exit 125" for each in self._directories)
        inside = f"case $line in */{self._name}) inside=1; esac"
        return f'inside=; while read -r line; do {inside}; done < /proc/self/cgroup; [ "$inside" ] || {{ {enter}; }}'

    def enter(self) -> None:
        """Bring the calling thread, and what it starts, into a group that takes threads."""
        for directory in self._directories:
            (directory / "tasks").write_text(str(threading.get_native_id()))

    @property
    def takes_threads(self) -> bool:
        """Whether a thread can enter without the rest of its process: each directory is of version 1."""
        return bool(self._directories) and all((each / "tasks").exists() for each in self._directories)

    def stays_in_use(self) -> bool:
        """Whether another process is inside and is not just ending, as bubblewrap's init is after its command."""
        deadline = time.monotonic() + _ENDING_S
        while self._is_in_use():
            if time.monotonic() > deadline:
                return True
            time.sleep(0.01)
        return False

    def _is_in_use(self) -> bool:
        own = str(os.getpid())
        with contextlib.suppress(FileNotFoundError):
            return any(set((each / "cgroup.procs").read_text().split()) - {own} for each in self._directories)
        return False

    def take_reached(self) -> tuple[str, ...]:
        """The limits that were reached since the last time, each as a sentence."""
        reached = []
        for counter, before in self._counters.items():
            now = counter.value()
            if now > before:
                reached.append(counter.sentence)
            self._counters[counter] = now
        return tuple(reached)

    def close(self) -> None:
        """Remove the group, once its last process is gone; what remains is removed by a later run's."""
        deadline = time.monotonic() + _REMOVAL_S
        for directory in self._directories:
            while not _removed(directory) and time.monotonic() < deadline:
                time.sleep(0.01)
        self._directories.clear()

    def _make(self, directory: Path, controllers: Mapping[str, _Controller]) -> None:
        _remove_abandoned(directory.parent)
        directory.mkdir()
        self._directories.append(directory)
        for name, controller in controllers.items():
            bound = _CONTROLLERS[name]
            with contextlib.suppress(OSError):
                counter = controller(directory, self._limits)
                self.bounds.add(bound)
                if counter is not None:
                    self._counters[counter] = counter.value()


_Controller = Callable[[Path, ResourceLimits], EventCount | None]
"""Sets one limit in a group's directory; returns what counts how often it was reached."""


def _memory_v1(group: Path, limits: ResourceLimits) -> EventCount | None:
    if limits.memory is None:
        return None
    (group / "memory.limit_in_bytes").write_text(str(limits.memory))
    with contextlib.suppress(OSError):  # absent where the kernel does not account for swap
        (group / "memory.memsw.limit_in_bytes").write_text(str(limits.memory))
    return EventCount(group / "memory.oom_control", "oom_kill", _out_of_memory(limits.memory))


def _memory_v2(group: Path, limits: ResourceLimits) -> EventCount | None:
    if limits.memory is None:
        return None
    (group / "memory.max").write_text(str(limits.memory))
    with contextlib.suppress(OSError):
        (group / "memory.swap.max").write_text("0")
    return EventCount(group / "memory.events", "oom_kill", _out_of_memory(limits.memory))


def _pids(group: Path, limits: ResourceLimits) -> EventCount | None:
    if limits.processes is None:
        return None
    (group / "pids.max").write_text(str(limits.processes))
    return EventCount(group / "pids.events", "max", _out_of_processes(limits.processes))


def _cpu_v1(group: Path, limits: ResourceLimits) -> None:
    if limits.cpus is not None:
        (group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(int(limits.cpus * _PERIOD_US)))


def _cpu_v2(group: Path, limits: ResourceLimits) -> None:
    if limits.cpus is not None:
        (group / "cpu.max").write_text(f"{int(limits.cpus * _PERIOD_US)} {_PERIOD_US}")


_V1: Mapping[str, _Controller] = {"memory": _memory_v1, "pids": _pids, "cpu": _cpu_v1}
_V2: Mapping[str, _Controller] = {"memory": _memory_v2, "pids": _pids, "cpu": _cpu_v2}


def _out_of_memory(limit: int) -> str:
    return f"a process was ended: the commands of a run may use {readable(limit)} of memory together"


def _out_of_processes(limit: int) -> str:
    return f"a new process was refused: the commands of a run may have {limit:,} processes and threads"


def counters_of(pid: int, limits: ResourceLimits) -> dict[EventCount, int]:
    """What counts how often a process's cgroup, which another program made, reached these limits; with its value."""
    found = set[EventCount]()
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if (place := _place(path, set(names.split(",")) if names else None)) is None:
            continue
        if limits.memory is not None:
            files = (place / "memory.oom_control", place / "memory.events")
            found |= {EventCount(file, "oom_kill", _out_of_memory(limits.memory)) for file in files if file.exists()}
        if limits.processes is not None and (file := place / "pids.events").exists():
            found.add(EventCount(file, "max", _out_of_processes(limits.processes)))
    return {each: each.value() for each in found}


def available(pid: int | None = None) -> set[Bound]:
    """What a cgroup of a process, by default this one, could bound."""
    with contextlib.suppress(OSError):
        return {_CONTROLLERS[name] for _, found in _parents(pid) for name in found}
    return set()


def _parents(pid: int | None = None) -> Iterator[tuple[Path, Mapping[str, _Controller]]]:
    """The directories in which the process may make groups, each with the controllers that work there."""
    for line in Path(f"/proc/{pid or 'self'}/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if names:
            wanted = set(names.split(","))
            found = {name: _V1[name] for name in wanted if name in _V1}
            place = _place(path, wanted)
            if found and place is not None and os.access(place, os.W_OK):
                yield place, found
        elif (place := _place(path)) is not None and os.access(place.parent, os.W_OK):
            # The processes of a group with groups below it must be in leaves: ours is beside the drone's own.
            with contextlib.suppress(OSError):
                usable = (place.parent / "cgroup.subtree_control").read_text().split()
                if found := {name: _V2[name] for name in usable if name in _V2}:
                    yield place.parent, found


def _place(path: str, controllers: set[str] | None = None) -> Path | None:
    """Where a group is mounted: of version 1 with these controllers, else of version 2."""
    kind = "cgroup" if controllers else "cgroup2"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        root, point = before.split()[3:5]
        found, _, options = after.split(" ", 2)
        fits = found == kind and (not controllers or controllers <= set(options.split(",")))
        if fits and Path(path).is_relative_to(root):
            return Path(point) / Path(path).relative_to(root)
    return None


def _remove_abandoned(parent: Path) -> None:
    """Remove the groups of processes that were killed before they could."""
    for directory in parent.glob(f"{PREFIX}*"):
        pid = directory.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            _removed(directory)


def _removed(directory: Path) -> bool:
    try:
        directory.rmdir()
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True
