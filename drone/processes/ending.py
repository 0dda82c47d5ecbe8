"""Ending everything that a command started: TERM, a grace, KILL, and a count of what was found.

Each command lives below a *holder*, bwrap or the keeper, that keeps all its descendants below itself: `setsid`,
`nohup` and double forks change session and parent, but not the ancestor. A mark in the environment is the second way
to find them, for the case that the holder itself was killed.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

MARK = "DRONEFLEET_COMMAND"
"""Environment variable of every command: `<owner>.<id of the command>`."""
_TICK = 0.02
_KILL_SECONDS = 5.0


@dataclass(frozen=True)
class Ended:
    """Processes that were seen, that we ended, and that are still there."""

    found: int = 0
    ended: int = 0
    survivors: int = 0


def end_below(holder_pid: int, mark: str, *, grace: float, ask: Callable[[], None] | None = None) -> Ended:
    """End all processes below the holder and all that carry `mark`, then the holder itself.

    Within `grace` seconds after TERM a process may clean up; then it is killed. `ask` tells them in their own way
    (closes their input, for example) that they may go: for that they get `grace` seconds before TERM.
    """
    holder = _process(holder_pid)
    if holder is None:
        return end_marked(mark)
    # The holder is stopped first: it would answer the end of the main process by killing all others at once,
    # which would rob them of their grace.
    with contextlib.suppress(psutil.Error):
        holder.suspend()
    found = _theirs(holder, mark)
    if ask is not None:
        ask()
        _wait(found, grace)
    _signal_all(found, "terminate")
    # What is stopped takes no TERM before it goes on.
    _signal_all(found, "resume")
    _wait(found, grace)
    found |= _kill_until_quiet(holder, mark)
    # The sandbox's own processes, which are not the command's: gone as well before somebody else counts what is left.
    own = {holder, *_below(holder)}
    _signal_all(own, "kill")
    _wait(found | own, _KILL_SECONDS)
    return _count(found)


def end_marked(mark: str) -> Ended:
    """Kill all processes whose mark is, or begins with, `mark`: what outlived its holder, or an older boot.

    Raises ValueError on an empty mark, which would be everybody's.
    """
    if not mark:
        raise ValueError("a mark is needed to find processes by")
    found = _kill_until_quiet(None, mark)
    _wait(found, _KILL_SECONDS)
    return _count(found)


def _kill_until_quiet(holder: psutil.Process | None, mark: str) -> set[psutil.Process]:
    """Kill, and look again: what forks while it is killed is caught in the next round."""
    seen: set[psutil.Process] = set()
    deadline = time.monotonic() + _KILL_SECONDS
    while alive := _theirs(holder, mark):
        seen |= alive
        _signal_all(alive, "kill")
        if time.monotonic() > deadline:
            break
        time.sleep(_TICK)
    return seen


def _theirs(holder: psutil.Process | None, mark: str) -> set[psutil.Process]:
    """All that the command started and that is alive; the holder is ours, though it carries the mark too."""
    if holder is None:
        return _marked(mark)
    return {
        process
        for process in _below(holder) | _marked(mark)
        if process != holder and _is_alive(process) and not _is_init_of(process, holder)
    }


def _is_init_of(process: psutil.Process, holder: psutil.Process) -> bool:
    """bwrap's init is a fork of bwrap: part of the sandbox, not of the command. It takes no TERM, and dies with bwrap.

    Its command line alone would not do to know it by, as a process may give itself any name.
    """
    try:
        return (
            process.ppid() == holder.pid
            and list(process.cmdline()) == list(holder.cmdline())
            and _is_first_of_namespace(process.pid)
        )
    except psutil.Error:
        return False


def _is_first_of_namespace(pid: int) -> bool:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            if line.startswith("NSpid:"):
                return line.split()[-1] == "1"
    return False


def _below(holder: psutil.Process) -> set[psutil.Process]:
    try:
        return set(holder.children(recursive=True))
    except psutil.Error:
        return set()


def _marked(mark: str) -> set[psutil.Process]:
    """Processes that carry the mark. Another user's environment cannot be read, and holds none of ours."""
    wanted = f"{MARK}={mark}"
    pids = _marked_in_proc(wanted.encode()) if sys.platform == "linux" else _marked_by_psutil(mark)
    return {process for pid in pids if (process := _process(pid)) is not None}


def _marked_in_proc(wanted: bytes) -> list[int]:
    """One read a process: psutil would parse each environment into a dictionary first."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes():
                    pids.append(int(entry.name))
    return pids


def _marked_by_psutil(mark: str) -> list[int]:
    pids = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARK, "").startswith(mark):
                pids.append(process.pid)
    return pids


def _process(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.Error:
        return None


def _alive(processes: Iterable[psutil.Process]) -> set[psutil.Process]:
    return {process for process in processes if _is_alive(process)}


def _is_alive(process: psutil.Process) -> bool:
    """A zombie runs no more: it only waits for a parent that we may have stopped.

    Nor does a process without memory, which has come to its end and is not a zombie yet: it has no command line to know
    it by any more.
    """
    try:
        if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
            return False
        return bool(process.memory_info().vms > 0)
    except psutil.AccessDenied:
        return True
    except psutil.Error:
        return False


def _age(process: psutil.Process) -> tuple[float, int]:
    try:
        return process.create_time(), process.pid
    except psutil.Error:
        return math.inf, process.pid


def _signal_all(processes: Iterable[psutil.Process], action: str) -> None:
    # Parents first: a shell whose child ends before it does would say so, and begin its next command.
    for process in sorted(processes, key=_age):
        # psutil compares the start time first, so that a reused pid is never hit.
        with contextlib.suppress(psutil.Error):
            getattr(process, action)()


def _wait(processes: set[psutil.Process], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while _alive(processes) and time.monotonic() < deadline:
        time.sleep(_TICK)


def _count(found: set[psutil.Process]) -> Ended:
    survivors = len(_alive(found))
    return Ended(found=len(found), ended=len(found) - survivors, survivors=survivors)
