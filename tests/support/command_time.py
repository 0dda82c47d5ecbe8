"""The time of commands: it passes all at once, when a test says so, and not while a busy machine starts them."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from drone.sandbox import command

LONG = 600.0
"""A time limit that a command reaches only in a test that hangs, or when `time_is_up_when` says so."""


def time_is_up_when(monkeypatch: pytest.MonkeyPatch, condition: Callable[[], bool]) -> None:
    """Every command of this process has reached its time limit (up to LONG) as soon as the condition was true once.

    After two minutes it has reached it too, so that a test can say what is missing.
    """
    passed, latest = [0.0], time.monotonic() + 120
    asked: list[float] = []

    def monotonic() -> float:
        # First, the command's deadline is computed: if time passed then, it would be a later one.
        if asked and not passed[0] and (condition() or time.monotonic() > latest):
            passed[0] = 2 * LONG
        asked.append(time.monotonic() + passed[0])
        return asked[-1]

    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=monotonic))
