"""Waiting for processes that end, those of others, too."""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Iterable
from contextlib import suppress

import psutil
import pytest

from tests.support import PATIENCE

LIMIT_S = 60.0 * PATIENCE
"""Ends a test that hangs."""


def ended(pid: int, *, within: float = 0.0) -> bool:
    """Whether the process is gone or a zombie, now or as soon as it is within so many seconds."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(process, select.POLLIN)
        return bool(poll.poll(max(0.0, within) * 1000))
    finally:
        os.close(process)


def wait_for_end(pids: int | Iterable[int], *, seconds: float = LIMIT_S) -> None:
    """Return as soon as all of these processes have ended. Fails with those that have not by then."""
    waited_for = [pids] if isinstance(pids, int) else list(pids)
    if still := [pid for pid in waited_for if not ended(pid, within=seconds)]:
        pytest.fail(f"processes that do not end: {still}")


def kill_all(process: subprocess.Popen[bytes] | None) -> None:
    """Kill a program and every process below it at once, as a power cut does."""
    assert process is not None
    found = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    # Suspend all of them first, so that none sees another one die.
    for act in (psutil.Process.suspend, psutil.Process.kill):
        for each in found:
            # A command of the agent may have ended since.
            with suppress(psutil.NoSuchProcess):
                act(each)
    wait_for_end(each.pid for each in found)
    process.wait(LIMIT_S)
