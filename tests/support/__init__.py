"""Shared helpers for tests: waiting, free ports, and skipping where a program is missing."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import pytest

T = TypeVar("T")
PATIENCE = 3 if os.environ.get("CI") == "true" else 1
"""By what tests multiply the time that they wait for something: CI machines are shared."""
_PORTS = range(12_000, 32_000)


def needs(program: str) -> None:
    """Skip the test if `program` is not installed; in CI a missing program is a failure."""
    if shutil.which(program):
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"{program} is not installed, and in CI it must be")
    pytest.skip(f"{program} is not installed here")


def wait_until(condition: Callable[[], T], *, seconds: float = 30.0, every: float = 0.2) -> T:
    """Return the condition's first true value; fail with its last value on timeout.

    It polls often at first and then every `every` seconds, because polling takes processor time from the work it waits
    for. The timeout is longer in CI (PATIENCE). A bound that matters must be asserted separately.
    """
    deadline = time.monotonic() + seconds * PATIENCE
    pause = min(0.01, every)
    while not (value := condition()):
        if time.monotonic() > deadline:
            pytest.fail(f"not true within {seconds} s; last value: {value!r}")
        time.sleep(pause)
        pause = min(pause * 1.3, every)
    return value


def free_port() -> int:
    """A loopback port on which nothing listens, and which no connection is assigned before its server starts.

    It is below the system's ephemeral range: a port from that range could be assigned to any connection of any test
    between this call and the server's start.
    """
    while True:
        port = secrets.choice(_PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
