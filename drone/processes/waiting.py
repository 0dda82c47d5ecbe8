"""Waiting for a process that this one started, without polling where the system allows that."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
from collections.abc import Callable, Iterator
from functools import partial

Wait = Callable[[float], int | None]
"""Waits so many seconds at most; the exit code, or None while the process runs."""


@contextlib.contextmanager
def exit_of(process: subprocess.Popen[bytes]) -> Iterator[Wait]:
    """Give a function that waits for the end of a process.

    It returns at once: `Popen.wait` with a time limit looks at ever longer intervals, which for a command of some
    milliseconds doubles the time.
    """
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # not Linux, an old kernel, or a sandbox around us that does not know it
        yield partial(_waited, process)
        return
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        yield lambda seconds: process.wait() if poll.poll(seconds * 1000) else None
    finally:
        os.close(descriptor)


def _waited(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
