"""Fails a test that leaves a process or a thread behind, and ends what an interrupted run of all tests left."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from tests.support import PATIENCE
from tests.support.ending import ended

LIMIT_S = 30.0 * PATIENCE
"""When a process or thread that has not ended is one that does not end. No test that passes takes that long."""
_LASTING: set[int] = set()
_LIBRARIES = ("ThreadPoolExecutor", "asyncio_", "AnyIO")
"""Threads that libraries keep for later work."""
_KEPT = "multiprocessing"
_RUN = "PYTEST_XDIST_TESTRUNUID"
"""The variable by which pytest-xdist names the whole run to its processes, which pass it on to what they start."""


def pytest_configure(config: pytest.Config) -> None:
    """Give the run a name that this process knows, too."""
    if hasattr(config.option, "testrunuid"):
        config.option.testrunuid = config.option.testrunuid or uuid4().hex


def pytest_unconfigure(config: pytest.Config) -> None:
    """End what the processes of this run have left: after Ctrl-C, pytest-xdist kills those that clean up for long."""
    if not hasattr(config, "workerinput") and (name := getattr(config.option, "testrunuid", None)):
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.pid != os.getpid() and process.environ().get(_RUN) == name:
                    process.kill()


def lasts(pid: int) -> None:
    """Exempt a process that later tests use too."""
    _LASTING.add(pid)


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Processes of shared fixtures exist before this fixture starts; those of the test must be gone after the test."""
    processes, threads = _children(), set(threading.enumerate())
    yield
    deadline = time.monotonic() + LIMIT_S
    while left := [*_new_processes(processes), *_new_threads(threads)]:
        if (rest := deadline - time.monotonic()) <= 0:
            for each in left:
                if isinstance(each, psutil.Process):
                    with suppress(psutil.NoSuchProcess):
                        each.kill()
            pytest.fail(f"the test left behind: {', '.join(map(str, left))}")
        _wait_for(left[0], rest)


def _wait_for(left: psutil.Process | threading.Thread, seconds: float) -> None:
    """Return as soon as it has ended, at the latest after so many seconds."""
    if isinstance(left, psutil.Process):
        ended(left.pid, within=seconds)
    else:
        left.join(seconds)


def _new_threads(before: set[threading.Thread]) -> list[threading.Thread]:
    return [
        thread
        for thread in threading.enumerate()
        if thread not in before and not thread.daemon and not thread.name.startswith(_LIBRARIES)
    ]


def _new_processes(before: set[int]) -> list[psutil.Process]:
    found = []
    for pid in _children() - before - _LASTING:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            command = " ".join(process.cmdline())
            # The standard library keeps its fork server and its resource tracker until this process ends.
            if process.status() != psutil.STATUS_ZOMBIE and _KEPT not in command:
                found.append(process)
    return found


def _children() -> set[int]:
    """The children of this process, read from the kernel in a tenth of a millisecond."""
    found: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        with suppress(OSError):
            found.update(map(int, (thread / "children").read_text().split()))
    return found
