"""Ctrl-C while a program is being imported, which takes longer than what most of its commands do."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

_INTERRUPTED = """
import importlib.abc, os, signal, sys

class Interrupt(importlib.abc.MetaPathFinder):
    def find_spec(self, name, *_):
        if name == {at!r}:
            os.kill(os.getpid(), signal.SIGINT)

{before}
sys.meta_path.insert(0, Interrupt())
sys.argv = ["program", "--help"]
from {package}.program import main
main()
"""


def interrupted(package: str, at: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """The program's `--help`, with Ctrl-C when it imports the module `at`."""
    code = _INTERRUPTED.format(package=package, at=at, before=before)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("package", ["control_plane.cli", "drone.cli"])
@pytest.mark.parametrize("at", ["typer", "shared.terminal.boundary"])
def test_ctrl_c_ends_a_program_quietly_while_it_is_imported(package: str, at: str) -> None:
    done = interrupted(package, at)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_a_program_that_was_told_to_ignore_ctrl_c_goes_on() -> None:
    done = interrupted("drone.cli", "typer", before="signal.signal(signal.SIGINT, signal.SIG_IGN)")
    assert (done.returncode, done.stdout.startswith("Usage:"), done.stderr) == (0, True, "")


@pytest.mark.parametrize("package", ["control_plane.cli", "drone.cli"])
def test_ctrl_c_is_answered_by_the_program_once_it_runs(package: str) -> None:
    done = interrupted(package, "typer._click._textwrap")  # imported to print the help
    assert (done.returncode, done.stderr.count("Traceback")) == (130, 0)
