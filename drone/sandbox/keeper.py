"""Runs one command and keeps hold of every process that it starts: the holder if there is no bwrap.

Started as a separate script (`python -I -S keeper.py PARENT COMMAND…`) for every command, so it imports only modules of
the standard library that load fast: pathlib and contextlib would double its start-up time. As a child subreaper it
stays the ancestor of `setsid`, `nohup` and double forks; it dies with the drone; and when the command ends it kills all
processes that the command left behind, as bwrap's process namespace would.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from types import FrameType

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_CANNOT_START = 127


def main(parent: int, command: list[str]) -> int:
    """Run the command and return its exit code, 128 + signal if a signal killed it."""
    signal.signal(signal.SIGTERM, _end_all)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    # The parent may have died before the line above took effect; then no signal will ever come.
    if os.getppid() != parent:
        return 128 + signal.SIGTERM
    try:
        # Python ignores SIGPIPE, and an ignored signal stays ignored across exec: `yes | head` would complain.
        pid = os.posix_spawnp(command[0], command, os.environ, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ])
    except OSError as error:
        os.write(2, f"{command[0]}: {os.strerror(error.errno or 0)}\n".encode())
        return _CANNOT_START
    status = _wait_for(pid)
    kill_descendants()
    return status


def kill_descendants() -> None:
    """Kill and reap until none is left: processes forked meanwhile become our children and are seen in a later round.

    The drone would adopt a remaining zombie.
    """
    # Most commands leave nothing behind, and listing all processes of the machine takes longer than many commands do.
    while not _reaped_all():
        for pid in descendants(os.getpid()):
            kill(pid)
        time.sleep(0.002)


def descendants(root: int) -> list[int]:
    """Every live process below `root`, according to the parents in /proc."""
    children = children_by_parent()
    found: list[int] = []
    waiting = [root]
    while waiting:
        born = children.get(waiting.pop(), [])
        found += born
        waiting += born
    return found


def children_by_parent() -> dict[int, list[int]]:
    """All live processes, by the parents in /proc."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - see the module's imports
        if name.isdigit():
            state, parent = _state_and_parent(name)
            if state not in {"", "Z", "X"}:
                children.setdefault(parent, []).append(int(name))
    return children


def _state_and_parent(pid: str) -> tuple[str, int]:
    """The state is empty for a process that has ended meanwhile."""
    try:
        with open(f"/proc/{pid}/stat", errors="replace") as file:  # noqa: PTH123 - see the module's imports
            # From the last bracket on: the name before these two fields may contain spaces and brackets.
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return "", 0
    return fields[0], int(fields[1])


def kill(pid: int) -> None:
    try:  # noqa: SIM105 - see the module's imports
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass  # it has ended, or belongs to another user


def _wait_for(pid: int) -> int:
    while True:
        ended, status = os.wait()
        if ended == pid:
            return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _reaped_all() -> bool:
    """Reap ended children; return whether no child is left, and so no descendant."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def _end_all(signum: int, frame: FrameType | None) -> None:
    del frame
    kill_descendants()
    os._exit(128 + signum)


if __name__ == "__main__":
    os._exit(main(int(sys.argv[1]), sys.argv[2:]))
