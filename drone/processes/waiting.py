"""Waiting for a process that this one started, without polling if the system allows that."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
from collections.abc import Callable, Iterator
from functools import partial

Wait = Callable[[float], int | None]
"""Waits at most the given seconds; returns the exit code, or None while the process runs."""


@contextlib.contextmanager
def exit_of(process: subprocess.Popen[bytes]) -> Iterator[Wait]:
    """Yield a function that waits for the end of a process.

    It returns as soon as the process ends: `Popen.wait` with a timeout polls at increasing intervals, which doubles the
    time of a command that takes a few milliseconds.
    """
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # not Linux, an old kernel, or a sandbox around us that does not support it
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
