"""Finding processes: below another one, by the mark in their environment, and by start time if a pid was reused."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import psutil

MARK = "DRONEFLEET_COMMAND"
"""Environment variable of every command: `<owner>.<id of the command>`."""

HOLDER = "holder"
"""A process that stands for a command in a container is named `holder=PID`."""


def find(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.Error:
        return None


def below(root: psutil.Process, spare: Iterable[int] = ()) -> set[psutil.Process]:
    """All descendants of `root`, zombies included, except those in `spare` and their descendants.

    One scan of the process table for the root and one for each entry of `spare`, regardless of the number of processes.
    """
    found = _descendants(root)
    for each in filter(None, map(find, spare)):
        found -= {each, *_descendants(each)}
    return found


def holder_inside(client: psutil.Process) -> set[psutil.Process]:
    """The holder of the container's command that `client` stands for: it is not below the client, which is named so."""
    with contextlib.suppress(OSError):
        name, _, pid = Path(f"/proc/{client.pid}/comm").read_text().strip().partition("=")
        if name == HOLDER and pid.isdigit() and (holder := find(int(pid))) is not None:
            return {holder}
    return set()


def marked(mark: str) -> set[psutil.Process]:
    """Processes that carry the mark. Another user's environment cannot be read, and holds none of ours."""
    wanted = f"{MARK}={mark}"
    pids = _marked_in_proc(wanted.encode()) if sys.platform == "linux" else _marked_by_psutil(mark)
    return set(filter(None, map(find, pids)))


def alive(processes: Iterable[psutil.Process]) -> set[psutil.Process]:
    return {process for process in processes if is_alive(process)}


def is_alive(process: psutil.Process) -> bool:
    """Whether the process is running. A zombie is not: it only waits for a parent that we may have stopped.

    Neither is a process without memory, which has ended but is not a zombie yet: it no longer has a command line that
    identifies it.
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
    """The start time of the process, as the kernel measures it; None if there is no such process.

    On Linux in ticks since boot: unlike psutil's value it does not change when the wall clock is set.
    """
    stat = Path(f"/proc/{pid}/stat")
    with contextlib.suppress(OSError, psutil.NoSuchProcess):
        if Path("/proc/stat").exists():
            return float(stat.read_text(errors="replace").rpartition(")")[2].split()[19])
        return float(psutil.Process(pid).create_time())
    return None


def this_machine_boot() -> str:
    """The kernel's id of the machine's current boot; empty if there is none."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _descendants(process: psutil.Process) -> set[psutil.Process]:
    if process.pid == os.getpid() and not _has_children():
        return set()  # as at the end of most runs: looking at every process of the machine takes 10 ms
    try:
        return set(process.children(recursive=True))
    except psutil.Error:
        return set()


def _has_children() -> bool:
    """Whether this process has a child, ended or not: the kernel knows without the process table."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        return True
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _marked_in_proc(wanted: bytes) -> list[int]:
    """One read per process: psutil would parse each environment into a dictionary first."""
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
