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
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil

from drone.sandbox import Ended
from shared.clock import Clock
from shared.events import Receipt

PR_SET_CHILD_SUBREAPER = 36
TERM_SECONDS = 10.0
"""For a process to clean up once it was asked to end; then it is killed."""
KILL_SECONDS = 5.0


def become_reaper() -> bool:
    """Make this process the parent of all orphans below it; False where the system has no such thing."""
    if not sys.platform.startswith("linux"):
        return False
    return bool(ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def end_below(
    clock: Clock,
    *,
    spare: Iterable[int] = (),
    at_once: bool = False,
    asked_at: Callable[[], float | None] = lambda: None,
) -> Receipt:
    """End every process below this one but those in `spare` and their descendants, and say what was found.

    First asks (SIGTERM, ten seconds), unless `at_once`; then kills, again and again, as long as new ones turn up: a
    process may fork between the look and the signal. `asked_at` tells when (monotonic) others of the same run were
    asked already: the ten seconds count from then, so that two stages never add up.
    """
    spared = set(spare)
    seen: dict[int, psutil.Process] = {process.pid: process for process in _below(spared)}
    asked = asked_at()
    patience = TERM_SECONDS - (time.monotonic() - asked if asked is not None else 0.0)
    if seen and patience > 0 and not at_once:
        _signal(seen.values(), signal.SIGTERM)
        # What is stopped takes no TERM before it goes on.
        _signal(seen.values(), signal.SIGCONT)
        _wait(list(seen.values()), patience)
    deadline = clock.monotonic() + KILL_SECONDS
    while (left := _below(spared)) and clock.monotonic() < deadline:
        seen.update((process.pid, process) for process in left)
        _signal(left, signal.SIGKILL)
        _wait(left, 0.2)
    survivors = len(_below(spared))
    return Receipt(found=len(seen), ended=len(seen) - survivors, survivors=survivors, at=clock.now())


def end_process(pid: int, started_at: float | None, machine_boot: str = "") -> Ended:
    """Kill a process that an older boot of the drone started, and all below it, and say how many there were.

    None where it is gone, or where its pid belongs to another by now: `started_at` and `machine_boot` are what
    `start_time` and `this_machine_boot` said of it then; without the latter the former alone counts.
    """
    if machine_boot not in {"", this_machine_boot()}:
        # The machine was started since then: whatever has this pid, even with the same start time, is another process.
        return Ended()
    try:
        process = psutil.Process(pid)
        if started_at is None or start_time(pid) != started_at:
            return Ended()
        tree = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return Ended()
    tree += [other for other in psutil.process_iter() if _session(other.pid) == pid and other not in tree]
    tree = [each for each in tree if _lives(each)]
    _signal(tree, signal.SIGKILL)
    _wait(tree, KILL_SECONDS)
    survivors = sum(map(_lives, tree))
    return Ended(len(tree), len(tree) - survivors, survivors)


def this_machine_boot() -> str:
    """The kernel's id of the time since this machine was started; empty where there is no such thing."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


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


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _wait(processes: list[psutil.Process], seconds: float) -> None:
    """Return once none of them runs, or when the time is up; a zombie that another has to collect is none that runs."""
    deadline = time.monotonic() + seconds
    while processes and (left := deadline - time.monotonic()) > 0:
        _, processes = psutil.wait_procs(processes, timeout=min(left, 0.1))
        processes = [each for each in processes if _lives(each)]


def _session(pid: int) -> int | None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        return os.getsid(pid)
    return None
