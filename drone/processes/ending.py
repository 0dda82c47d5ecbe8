"""Ending processes: TERM, a grace period, KILL, and a count of the processes found.

Each command runs below a *holder*, bwrap, the keeper or a process in its container, that keeps all its descendants
below itself: `setsid`, `nohup` and double forks change session and parent, but not the ancestor. A mark in the
environment is the second way to find them, in case the holder itself was killed. Processes that escape both are below
the run, which adopts them.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import psutil

from drone.processes.reaping import reap
from drone.processes.receipt import Ended
from drone.processes.tree import (
    alive,
    below,
    find,
    holder_inside,
    marked,
    session_of,
    start_time,
    this_machine_boot,
)

TERM_SECONDS = 10.0
"""Time for a process to clean up after SIGTERM; then it is killed."""
_KILL_SECONDS = 5.0
_TICK = 0.02
Look = Callable[[], set[psutil.Process]]
"""Finds the live processes to end."""


def end_command(holder_pid: int, mark: str, *, grace: float, ask: Callable[[], None] | None = None) -> Ended:
    """End all processes below the holder and all that carry `mark`, then the holder itself.

    A process has `grace` seconds after TERM to clean up; then it is killed. `ask` requests the end in another way
    (closes their input, for example): for that they get `grace` seconds before TERM.
    """
    holder = find(holder_pid)
    if holder is None:
        return end_marked(mark)
    # The holder is stopped first: it would react to the end of the main process by killing all others at once,
    # without the grace period. A client is stopped before its holder is looked up: it has named it, or never asks it.
    _signal_all({holder}, "suspend")
    holders = {holder, *holder_inside(holder)}
    _signal_all(holders, "suspend")
    look = partial(_of_command, holders, mark)
    found = look()
    if ask is not None:
        ask()
        _wait(found, grace)
    found |= _end(look, found, grace)
    # The sandbox's own processes, which are not the command's, must also be gone before others count what is left.
    own = holders.union(*map(below, holders))
    _signal_all(own, "kill")
    _wait_for_exit(found | own, _KILL_SECONDS)
    # These are orphans now that the holder is gone; the code that started the holder reaps it.
    reap(found | own - {holder})
    return _count(found)


def end_marked(mark: str) -> Ended:
    """Kill all processes whose mark is, or begins with, `mark`: those that outlived their holder or an older boot.

    Raises ValueError on an empty mark, which would match every command.
    """
    if not mark:
        raise ValueError("a mark is required to find processes")
    found = _kill_until_quiet(partial(marked, mark))
    _wait(found, _KILL_SECONDS)
    return _count(found)


def end_all(
    *, spare: Iterable[int] = (), at_once: bool = False, asked_at: Callable[[], float | None] = lambda: None
) -> Ended:
    """End and reap every process below this one except those in `spare` and their descendants.

    Sends SIGTERM and waits ten seconds, unless `at_once`; then kills. `asked_at` returns when (monotonic) others of the
    same run were already asked to end: the ten seconds count from then, so that two stages never add up.
    """
    me, spared = psutil.Process(), tuple(spare)
    asked = asked_at()
    waited = 0.0 if asked is None else time.monotonic() - asked
    found = _end(lambda: alive(below(me, spared)), set(), 0.0 if at_once else TERM_SECONDS - waited)
    reap(below(me, spared))
    return _count(found)


def end_process(pid: int, started_at: float | None, machine_boot: str) -> Ended:
    """Kill a process that an older boot of the drone started, and all below it; return how many there were.

    The counts are zero if it is gone, or if its pid now belongs to another process: `started_at` and `machine_boot` are
    the values of `start_time` and `this_machine_boot` from then.
    """
    if machine_boot != this_machine_boot():
        # The machine was restarted since then: a process with this pid, even with the same start time, is another one.
        return Ended()
    process = find(pid)
    if process is None or started_at is None or start_time(pid) != started_at:
        return Ended()
    session = {other for other in psutil.process_iter() if session_of(other.pid) == pid}
    tree = {process} | below(process) | session
    found = _end(lambda: alive(tree), set(), 0.0)
    return _count(found)


def _end(look: Look, known: set[psutil.Process], grace: float) -> set[psutil.Process]:
    """End the processes that `look` finds and those already `known`: TERM, unless there is no grace, then KILL."""
    found = known | look()
    if found and grace > 0:
        _signal_all(found, "terminate")
        # A stopped process does not handle TERM until it resumes.
        _signal_all(found, "resume")
        _wait(found, grace)
    return found | _kill_until_quiet(look)


def _kill_until_quiet(look: Look) -> set[psutil.Process]:
    """Kill, and look again: processes forked meanwhile are caught in the next round."""
    seen: set[psutil.Process] = set()
    deadline = time.monotonic() + _KILL_SECONDS
    while found := look():
        seen |= found
        _signal_all(found, "kill")
        if time.monotonic() > deadline:
            break
        time.sleep(_TICK)
    return seen


def _of_command(holders: set[psutil.Process], mark: str) -> set[psutil.Process]:
    """All live processes that the command started; not the holders, which are ours, though they carry the mark too."""
    found = alive(marked(mark).union(*map(below, holders)) - holders)
    return {process for process in found if not any(_is_init_of(process, holder) for holder in holders)}


def _is_init_of(process: psutil.Process, holder: psutil.Process) -> bool:
    """bwrap's init is a fork of bwrap: part of the sandbox, not of the command. It ignores TERM, and dies with bwrap.

    Its command line alone does not identify it, because a process may give itself any name.
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


def _age(process: psutil.Process) -> tuple[float, int]:
    try:
        return process.create_time(), process.pid
    except psutil.Error:
        return math.inf, process.pid


def _signal_all(processes: Iterable[psutil.Process], action: str) -> None:
    # Parents first: a shell whose child ends before it does would report that and start its next command.
    for process in sorted(processes, key=_age):
        # psutil compares the start time first, so that a reused pid is never hit.
        with contextlib.suppress(psutil.Error):
            getattr(process, action)()


def _wait(processes: set[psutil.Process], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while alive(processes) and time.monotonic() < deadline:
        time.sleep(_TICK)


def _wait_for_exit(processes: set[psutil.Process], seconds: float) -> None:
    """Wait until all of them are zombies or gone: a process that lost its memory passes on its children only then."""
    deadline = time.monotonic() + seconds
    while any(map(_is_exiting, processes)) and time.monotonic() < deadline:
        time.sleep(0.001)


def _is_exiting(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


def _count(found: set[psutil.Process]) -> Ended:
    survivors = len(alive(found))
    return Ended(found=len(found), ended=len(found) - survivors, survivors=survivors)
