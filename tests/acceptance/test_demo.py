"""`make demo`, without make: the whole fleet as a new user first sees it, and nothing left behind afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import psutil
import pytest

from tests.support import wait_until, warm_processes
from tests.support.command_tree import clean_environment
from tests.support.documents import ROOT

pytestmark = [pytest.mark.timeout(240), pytest.mark.apart]


@contextmanager
def demo(directory: Path, **settings: str) -> Iterator[subprocess.Popen[str]]:
    """The demo, with its temporary directory inside `directory`."""
    environment = {**clean_environment(), "TMPDIR": str(directory), **settings}
    command = [sys.executable, "-m", "tests.support.demo_program"]
    process = warm_processes.popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT
    )
    try:
        yield cast("subprocess.Popen[str]", process)
    finally:
        process.terminate()
        process.wait(60)


def left_by(directory: Path) -> list[str]:
    """What is still there of a demo: its processes and its files."""
    return [*processes_of(directory), *map(str, directory.iterdir())]


def processes_of(directory: Path) -> list[str]:
    """Command lines of the processes whose arguments, environment or working directory contain `directory`."""
    return [" ".join(process.cmdline()) for process in psutil.process_iter() if _works_in(process, str(directory))]


def _works_in(process: psutil.Process, place: str) -> bool:
    try:
        return process.pid != os.getpid() and any(
            place in trace for trace in (*process.cmdline(), *process.environ().values(), process.cwd())
        )
    except (psutil.Error, OSError):
        return False


def test_the_demo_brings_a_branch_back_says_that_its_model_is_scripted_and_leaves_nothing(tmp_path: Path) -> None:
    with demo(tmp_path) as process:
        said, _ = process.communicate(timeout=200)

    assert process.returncode == 0, said
    assert "+printf '%s' \"$*\" | tr 'A-Z' 'a-z' | tr -cs 'a-z0-9' '-' | sed" in said
    assert "the test fails on main and passes on fleet/" in said
    assert "SCRIPTED: its answers come from" in said
    wait_until(lambda: left_by(tmp_path) == [])


def test_ctrl_c_in_the_demo_stops_everything_and_leaves_nothing(tmp_path: Path) -> None:
    with demo(tmp_path) as process:
        wait_until(lambda: any("valkey" in name for name in processes_of(tmp_path)), seconds=60)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)

    assert process.returncode == 130, said
    assert "Traceback" not in said
    wait_until(lambda: left_by(tmp_path) == [])


def test_a_demo_without_a_model_starts_nothing_and_with_one_that_does_not_answer_leaves_its_logs_but_no_process(
    tmp_path: Path,
) -> None:
    with demo(tmp_path, API_KEY="sk-not-to-be-shown") as process:
        said, _ = process.communicate(timeout=60)
    assert (process.returncode, "API_KEY without MODEL" in said) == (2, True), said
    assert list(tmp_path.iterdir()) == []

    with demo(tmp_path, MODEL="openai/x", API_BASE="http://127.0.0.1:9/v1", API_KEY="sk-not-to-be-shown") as process:
        said, _ = process.communicate(timeout=200)
    assert process.returncode == 1, said
    assert "error: the order is failed (" in said
    assert "sk-not-to-be-shown" not in said
    wait_until(lambda: processes_of(tmp_path) == [])
    assert len(list(tmp_path.glob("dronefleet-demo-*/*.log"))) >= 2
