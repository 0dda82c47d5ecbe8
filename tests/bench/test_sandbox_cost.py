"""What a sandbox adds to a command that does nothing, when the run's keeper starts it: at most 5 ms on an idle machine.

A busy machine makes all of it longer, so `make bench` asserts a part of what two simpler programs take one after the
other: bwrap with the least that it can be asked for, which is slow where the kernel makes namespaces slowly, and Python
without its library, which is slow where all programs are. Only medians keep the ratio under load, because the shortest
times of several processes are not those of an idle machine.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from drone.sandbox import CommandSpec, Sandbox
from tests.support import needs

pytestmark = pytest.mark.bench

ROUNDS = 20
TIMES = 4
RATIO = 0.6
"""0.2 to 0.3 are usual."""
MOST_MS = 5.0
MOST_OVER_BWRAP = 0.7
"""Over 1 when all processes of the machine are searched after each command."""
PYTHON = (sys.executable, "-I", "-S", "-c", "")
LEAST = ("bwrap", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true")


@pytest.mark.parametrize("form", ["short", pytest.param("long", marks=pytest.mark.long)])
def test_a_sandboxed_command_costs_little_more_than_a_bare_one(
    sandbox: Sandbox, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    """The best of a few medians: what is slow by itself is slow each time, and other load on the machine is not."""
    needs("bwrap")
    (tmp_path / "work").mkdir()
    session = sandbox.for_session(scratch=tmp_path / "scratch")

    def sandboxed() -> None:
        assert session.run(CommandSpec(["true"], workspace=tmp_path / "work", timeout=60)).return_code == 0

    sandboxed()  # the first command starts the keeper, in its network or container
    bare, python, least = (started(*words) for words in (["true"], PYTHON, LEAST))
    found = [medians(sandboxed, bare, python, least) for _ in range(TIMES)]
    over, simpler = min(
        ((inside - plain, one + other - 2 * plain) for inside, plain, one, other in found),
        key=lambda pair: pair[0] / pair[1],
    )
    with capsys.disabled():
        sys.stdout.write(
            f"\n{sandbox.kind}: {over:.1f} ms over a bare command, {over / simpler:.2f} times the simpler ones\n"
        )
    assert over <= (MOST_MS if form == "long" else RATIO * simpler)


def test_a_command_in_bubblewrap_takes_less_than_bwrap_with_the_same_arguments(
    bwrap: Sandbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "work").mkdir()
    session = bwrap.for_session(scratch=tmp_path / "scratch")
    line = session.line(["true"], workspace=tmp_path / "work")

    def ours() -> None:
        assert session.run(CommandSpec(["true"], workspace=tmp_path / "work", timeout=60)).return_code == 0

    def bare() -> None:
        where, given = line.directory, dict(line.environment)
        subprocess.run(line.arguments, check=True, cwd=where, env=given, stdin=subprocess.DEVNULL, capture_output=True)

    # A machine with many processes: to search them takes as long as they are many.
    many = "for _ in $(seq 1000); do sleep 300 & done; echo; wait"
    with subprocess.Popen(["sh", "-c", many], stdout=subprocess.PIPE, start_new_session=True) as others:
        assert others.stdout is not None
        others.stdout.readline()
        try:
            found = [medians(ours, bare) for _ in range(TIMES)]
        finally:
            os.killpg(others.pid, signal.SIGKILL)
    over = min(inside / plain for inside, plain in found)
    with capsys.disabled():
        sys.stdout.write(f"\n{over:.2f} times bwrap with the same arguments\n")
    assert over <= MOST_OVER_BWRAP, found


def started(*words: str) -> Callable[[], None]:
    def run() -> None:
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL, capture_output=True)

    return run


def medians(*commands: Callable[[], None]) -> list[float]:
    """The median of each command's milliseconds, all measured in turn."""
    rounds = [[_ms(run) for run in commands] for _ in range(ROUNDS)]
    return [statistics.median(each) for each in zip(*rounds, strict=True)]


def _ms(run: Callable[[], None]) -> float:
    began = time.perf_counter()
    run()
    return 1e3 * (time.perf_counter() - began)
