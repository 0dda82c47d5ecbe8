"""Finding processes: below another one, by the mark in their environment, and by what tells two with one pid apart."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import psutil

MARK = "DRONEFLEET_COMMAND"
"""Environment variable of every command: `<owner>.<id of the command>`."""


def find(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.Error:
        return None


def below(root: psutil.Process, spare: Iterable[int] = ()) -> set[psutil.Process]:
    """All descendants of `root`, zombies included, but those in `spare` and their descendants.

    One scan of the process table for the root and one for each that is spared, however many processes there are.
    """
    found = _descendants(root)
    for each in filter(None, map(find, spare)):
        found -= {each, *_descendants(each)}
    return found


def marked(mark: str) -> set[psutil.Process]:
    """Processes that carry the mark. Another user's environment cannot be read, and holds none of ours."""
    wanted = f"{MARK}={mark}"
    pids = _marked_in_proc(wanted.encode()) if sys.platform == "linux" else _marked_by_psutil(mark)
    return set(filter(None, map(find, pids)))


def alive(processes: Iterable[psutil.Process]) -> set[psutil.Process]:
    return {process for process in processes if is_alive(process)}


def is_alive(process: psutil.Process) -> bool:
    """Whether the process runs. A zombie does not: it only waits for a parent that we may have stopped.

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


def session_of(pid: int) -> int | None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        return os.getsid(pid)
    return None


def start_time(pid: int) -> float | None:
    """When the process began, in the kernel's own measure; None if there is none.

    On Linux in ticks since boot: unlike psutil's figure it does not move when the wall clock is set.
    """
    stat = Path(f"/proc/{pid}/stat")
    with contextlib.suppress(OSError, psutil.NoSuchProcess):
        if Path("/proc/stat").exists():
            return float(stat.read_text(errors="replace").rpartition(")")[2].split()[19])
        return float(psutil.Process(pid).create_time())
    return None


def this_machine_boot() -> str:
    """The kernel's id of the time since this machine was started; empty where there is no such thing."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _descendants(process: psutil.Process) -> set[psutil.Process]:
    try:
        return set(process.children(recursive=True))
    except psutil.Error:
        return set()


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
