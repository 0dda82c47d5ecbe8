"""Ending processes: TERM, a grace, KILL, and a count of what was found.

Each command lives below a *holder*, bwrap or the keeper, that keeps all its descendants below itself: `setsid`,
`nohup` and double forks change session and parent, but not the ancestor. A mark in the environment is the second way
to find them, for the case that the holder itself was killed. What outlives both is below the run, which adopts it.
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
from drone.processes.tree import alive, below, find, is_alive, marked, session_of, start_time, this_machine_boot

TERM_SECONDS = 10.0
"""For a process to clean up once it was asked to end; then it is killed."""
_KILL_SECONDS = 5.0
_TICK = 0.02
Look = Callable[[], set[psutil.Process]]
"""Finds the living processes that are to end."""


def end_command(holder_pid: int, mark: str, *, grace: float, ask: Callable[[], None] | None = None) -> Ended:
    """End all processes below the holder and all that carry `mark`, then the holder itself.

    Within `grace` seconds after TERM a process may clean up; then it is killed. `ask` tells them in their own way
    (closes their input, for example) that they may go: for that they get `grace` seconds before TERM.
    """
    holder = find(holder_pid)
    if holder is None:
        return end_marked(mark)
    # The holder is stopped first: it would answer the end of the main process by killing all others at once,
    # which would rob them of their grace.
    with contextlib.suppress(psutil.Error):
        holder.suspend()
    look = partial(_of_command, holder, mark)
    found = look()
    if ask is not None:
        ask()
        _wait(found, grace)
    found |= _end(look, found, grace)
    # The sandbox's own processes, which are not the command's: gone as well before somebody else counts what is left.
    own = {holder, *below(holder)}
    _signal_all(own, "kill")
    _wait(found | own, _KILL_SECONDS)
    # Orphans now that the holder is gone; the holder is for the code that started it.
    reap(found | own - {holder})
    return _count(found)


def end_marked(mark: str) -> Ended:
    """Kill all processes whose mark is, or begins with, `mark`: what outlived its holder, or an older boot.

    Raises ValueError on an empty mark, which would be everybody's.
    """
    if not mark:
        raise ValueError("a mark is needed to find processes by")
    found = _kill_until_quiet(partial(marked, mark))
    _wait(found, _KILL_SECONDS)
    return _count(found)


def end_all(
    *, spare: Iterable[int] = (), at_once: bool = False, asked_at: Callable[[], float | None] = lambda: None
) -> Ended:
    """End and reap every process below this one but those in `spare` and their descendants.

    First asks (SIGTERM, ten seconds), unless `at_once`; then kills. `asked_at` tells when (monotonic) others of the
    same run were asked already: the ten seconds count from then, so that two stages never add up.
    """
    me, spared = psutil.Process(), tuple(spare)
    asked = asked_at()
    waited = 0.0 if asked is None else time.monotonic() - asked
    found = _end(lambda: alive(below(me, spared)), set(), 0.0 if at_once else TERM_SECONDS - waited)
    reap(below(me, spared))
    return _count(found)


def end_process(pid: int, started_at: float | None, machine_boot: str = "") -> Ended:
    """Kill a process that an older boot of the drone started, and all below it, and say how many there were.

    None where it is gone, or where its pid belongs to another by now: `started_at` and `machine_boot` are what
    `start_time` and `this_machine_boot` said of it then; without the latter the former alone counts.
    """
    if machine_boot not in {"", this_machine_boot()}:
        # The machine was started since then: whatever has this pid, even with the same start time, is another process.
        return Ended()
    process = find(pid)
    if process is None or started_at is None or start_time(pid) != started_at:
        return Ended()
    session = {other for other in psutil.process_iter() if session_of(other.pid) == pid}
    tree = {process} | below(process) | session
    found = _end(lambda: alive(tree), set(), 0.0)
    return _count(found)


def _end(look: Look, known: set[psutil.Process], grace: float) -> set[psutil.Process]:
    """End what `look` finds, and what was `known` before it: ask, unless there is no grace, then kill."""
    found = known | look()
    if found and grace > 0:
        _signal_all(found, "terminate")
        # What is stopped takes no TERM before it goes on.
        _signal_all(found, "resume")
        _wait(found, grace)
    return found | _kill_until_quiet(look)


def _kill_until_quiet(look: Look) -> set[psutil.Process]:
    """Kill, and look again: what forks while it is killed is caught in the next round."""
    seen: set[psutil.Process] = set()
    deadline = time.monotonic() + _KILL_SECONDS
    while found := look():
        seen |= found
        _signal_all(found, "kill")
        if time.monotonic() > deadline:
            break
        time.sleep(_TICK)
    return seen


def _of_command(holder: psutil.Process, mark: str) -> set[psutil.Process]:
    """All that the command started and that is alive; the holder is ours, though it carries the mark too."""
    return {
        process
        for process in below(holder) | marked(mark)
        if process != holder and is_alive(process) and not _is_init_of(process, holder)
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
    while alive(processes) and time.monotonic() < deadline:
        time.sleep(_TICK)


def _count(found: set[psutil.Process]) -> Ended:
    survivors = len(alive(found))
    return Ended(found=len(found), ended=len(found) - survivors, survivors=survivors)
