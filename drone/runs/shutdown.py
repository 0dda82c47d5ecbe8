"""Ending process trees, with a receipt: how many processes were found, ended by us, and still there.

A process that calls `become_reaper` inherits every orphan below it, so that `setsid`, `nohup` and double forks do not
lead out of its tree: whatever a run started can be found from the run.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

import psutil

from shared.clock import Clock
from shared.events import Receipt

PR_SET_CHILD_SUBREAPER = 36
TERM_SECONDS = 2.0
KILL_SECONDS = 5.0


def become_reaper() -> bool:
    """Make this process the parent of all orphans below it; False where the system has no such thing."""
    if not sys.platform.startswith("linux"):
        return False
    return bool(ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def end_below(clock: Clock, *, spare: Iterable[int] = (), at_once: bool = False) -> Receipt:
    """End every process below this one but those in `spare` and their descendants, and say what was found.

    First asks (SIGTERM, two seconds), unless `at_once`; then kills, again and again, as long as new ones turn up: a
    process may fork between the look and the signal.
    """
    spared = set(spare)
    seen: dict[int, psutil.Process] = {process.pid: process for process in _below(spared)}
    if seen and not at_once:
        _signal(seen.values(), signal.SIGTERM)
        _wait(list(seen.values()), TERM_SECONDS)
    deadline = clock.monotonic() + KILL_SECONDS
    while (left := _below(spared)) and clock.monotonic() < deadline:
        seen.update((process.pid, process) for process in left)
        _signal(left, signal.SIGKILL)
        _wait(left, 0.2)
    survivors = len(_below(spared))
    return Receipt(found=len(seen), ended=len(seen) - survivors, survivors=survivors, at=clock.now())


def end_process(pid: int, started_at: float | None) -> bool:
    """Kill a process of an older boot, and all below it; False if it is gone or its pid belongs to another by now."""
    try:
        process = psutil.Process(pid)
        if started_at is None or start_time(pid) != started_at:
            return False
        tree = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return False
    tree += [other for other in psutil.process_iter() if _session(other.pid) == pid and other not in tree]
    _signal(tree, signal.SIGKILL)
    _wait(tree, KILL_SECONDS)
    return True


def start_time(pid: int) -> float | None:
    """When the process began, in the kernel's own measure; None if there is none.

    On Linux in ticks since boot: unlike psutil's figure it does not move when the wall clock is set.
    """
    stat = Path(f"/proc/{pid}/stat")
    with contextlib.suppress(OSError, psutil.NoSuchProcess):
        if stat.parent.parent.joinpath("stat").exists():
            return float(stat.read_text().rpartition(")")[2].split()[19])
        return float(psutil.Process(pid).create_time())
    return None


def _below(spared: set[int]) -> list[psutil.Process]:
    """Living descendants of this process; a zombie of ours is reaped on the way, as nobody else would."""
    found = []
    todo = [child for child in psutil.Process().children() if child.pid not in spared]
    while todo:
        process = todo.pop()
        with contextlib.suppress(psutil.NoSuchProcess):
            todo.extend(process.children())
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
            elif process.ppid() == os.getpid():
                _reap(process.pid)
    return found


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _signal(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        # Not ours to signal (a setuid program) or gone: it shows up among the survivors, or it does not.
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            process.send_signal(number)


def _wait(processes: list[psutil.Process], seconds: float) -> None:
    psutil.wait_procs(processes, timeout=seconds)


def _session(pid: int) -> int | None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        return os.getsid(pid)
    return None
