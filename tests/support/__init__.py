"""Shared helpers for tests: waiting, ports of their own, and skipping where a program is missing."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import time
from collections.abc import Callable
from typing import TypeVar

import pytest

T = TypeVar("T")
PATIENCE = 3 if os.environ.get("CI") == "true" else 1
"""By what tests multiply the time that they wait for something: CI machines are shared."""


def needs(program: str) -> None:
    """Skip the test if `program` is not installed; in CI a missing program is a failure."""
    if shutil.which(program):
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"{program} is not installed, and in CI it must be")
    pytest.skip(f"{program} is not installed here")


def wait_until(condition: Callable[[], T], *, seconds: float = 60.0, every: float = 0.2) -> T:
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


class HeldPort:
    """A loopback port that the system gives to nobody else until it is released; connections to it are refused.

    Only a server that is told its number listens on it, also after a restart: a server that sets SO_REUSEADDR, as
    usual, may share the port with a socket that does so, too, and does not listen.
    """

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number: int = self._socket.getsockname()[1]

    def release(self) -> None:
        self._socket.close()

    def __enter__(self) -> int:
        return self.number

    def __exit__(self, *_: object) -> None:
        self.release()


def free_port() -> int:
    """The number of a port that is held until this process ends: for a server that comes back under its address."""
    held = HeldPort()
    atexit.register(held.release)
    return held.number
