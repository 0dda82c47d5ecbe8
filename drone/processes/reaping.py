"""Adopting orphans, and reaping those that have ended.

A process that calls `become_reaper` inherits every orphan below it, so that `setsid`, `nohup` and double forks do not
leave its tree: every process that a run started can be found from the run. In return it must reap them, or each one
remains a zombie. bwrap leaves one with every command: it does not wait for the first process of its namespace.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

PR_SET_CHILD_SUBREAPER = 36
_ENDING_SECONDS = 5.0
"""How long the first process of a namespace is awaited whose sandbox is gone: as long as after a KILL."""
_reaping = threading.Lock()
"""Two threads must not reap at once: between the check and the reaping, a pid could be reused by another process."""


def become_reaper() -> bool:
    """Make this process the parent of all orphans below it; False if the system does not support that."""
    if not sys.platform.startswith("linux"):
        return False
    return bool(ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def reap_adopted() -> None:
    """Reap the zombies that this process adopted. Cheap: call it after each command.

    Those that it started itself are left to the code that waits for them, in any library: reaped elsewhere, they would
    appear to have ended with 0. An orphan that leads its own session cannot be distinguished from them; it is reaped
    when all processes of the run are ended.
    """
    session = os.getsid(0)
    with _reaping:
        for pid in _children():
            if _leads_inner_namespace(pid):
                # Its sandbox is gone, and it is about to end, with all processes in the namespace: until then, one
                # of them may still write into the workspace.
                _wait_for_zombie(pid)
                _reap(pid)
            elif _status(pid, "State") == "Z" and _status(pid, "NSsid") not in {str(session), str(pid)}:
                # A process stays in the session of the process that started it, or leads its own.
                _reap(pid)


def reap(processes: Iterable[psutil.Process]) -> None:
    """Reap those of `processes` that are zombie children of this one. No other code may be waiting for them."""
    with _reaping:
        for process in processes:
            with contextlib.suppress(psutil.Error):
                if process.status() == psutil.STATUS_ZOMBIE and process.ppid() == os.getpid():
                    _reap(process.pid)


def _leads_inner_namespace(pid: int) -> bool:
    """Whether a child of ours is the first process of a PID namespace: only sandboxes start those."""
    return bool(_status(pid, "NSpid", at=1))


def _wait_for_zombie(pid: int) -> None:
    deadline = time.monotonic() + _ENDING_SECONDS
    while _status(pid, "State") not in {"Z", ""} and time.monotonic() < deadline:
        time.sleep(0.001)


def _status(pid: int, name: str, at: int = 0) -> str:
    """A word of a line of /proc/<pid>/status; empty if there is none."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            if line.startswith(f"{name}:"):
                return (line.split()[1:] + [""] * (at + 1))[at]
    return ""


def _children() -> list[int]:
    """The children of this process, zombies included."""
    listed = list(Path("/proc/self/task").glob("*/children"))
    if not listed:
        # Not Linux, or a kernel that was built without these files.
        return [child.pid for child in psutil.Process().children()]
    found: list[int] = []
    for each in listed:
        with contextlib.suppress(OSError):  # a thread that has ended
            found += map(int, each.read_text().split())
    return found


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
