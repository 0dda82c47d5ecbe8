"""What a sandbox adds to a command that does nothing: at most 15 ms on an idle machine.

A busy machine makes all of it longer, so the bound is a multiple of what starting Python without its library takes,
which is most of what a container's client does.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from drone.sandbox import Sandbox

pytestmark = pytest.mark.bench

ROUNDS = 40
MOST = 4.0
"""Idle, 15 ms are twice what Python takes."""
PYTHON = (sys.executable, "-I", "-S", "-c", "")


def test_a_sandboxed_command_costs_little_more_than_a_bare_one(walled: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    session = walled.for_session(scratch=tmp_path / "scratch")

    def sandboxed() -> None:
        assert session.run(["true"], workspace=tmp_path / "work", timeout=60).return_code == 0

    sandboxed()  # the first command makes the network or the container
    found = medians({"sandboxed": sandboxed, "bare": started("true"), "python": started(*PYTHON)})

    ratio = (found["sandboxed"] - found["bare"]) / (found["python"] - found["bare"])
    sys.stdout.write(f"{walled.kind}: {1e3 * (found['sandboxed'] - found['bare']):.1f} ms over a bare command\n")
    assert ratio <= MOST, found


def started(*words: str) -> Callable[[], None]:
    def run() -> None:
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL, capture_output=True)

    return run


def medians(commands: dict[str, Callable[[], None]]) -> dict[str, float]:
    """The median of each command's seconds, all measured in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, run in commands.items():
            began = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - began)
    return {name: statistics.median(each) for name, each in seconds.items()}
