"""What a command costs before it does anything: the processor time of its process, as a ratio to importing Typer.

On an idle machine `--help` takes at most 0.3 s and a command that asks a server at most 0.5 s. Importing Typer, which
no command can do without, takes a part of that, so the bounds are multiples of it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.command_tree import clean_environment
from tests.support.fleet import Api

pytestmark = pytest.mark.bench

BIN = Path(sys.executable).parent
BARE = (sys.executable, "-c", "import typer")
HELP = (("fleet", "--help"), ("drone", "--help"))
ASKING = (("orders",), ("show", "@last"))
ROUNDS = 3
MOST_OF_HELP, MOST_OF_ASKING = 4.5, 10.0
"""3.0 and 7.5 are usual, 3.3 and 8.3 were seen beside other tests."""


def test_help_costs_little_more_than_its_library() -> None:
    ratios = measured({" ".join(words): (str(BIN / words[0]), *words[1:]) for words in HELP}, clean_environment())
    assert max(ratios.values()) <= MOST_OF_HELP, ratios


def test_a_command_that_asks_a_server_costs_little_more(api: Api) -> None:
    api.add_work()
    api.submit("Fix it")  # @last
    environment = {**clean_environment(), "FLEET_URL": api.url, "FLEET_API_TOKEN": api.token}
    ratios = measured({f"fleet {words[0]}": (str(BIN / "fleet"), *words) for words in ASKING}, environment)
    assert max(ratios.values()) <= MOST_OF_ASKING, ratios


def measured(commands: dict[str, Sequence[str]], environment: dict[str, str]) -> dict[str, float]:
    """The median of each command's ratios to importing Typer in the same round; printed, with seconds."""
    rounds = [
        {name: processor_seconds(command, environment) for name, command in {"": BARE, **commands}.items()}
        for _ in range(ROUNDS)
    ]
    ratios = {name: statistics.median(each[name] / each[""] for each in rounds) for name in commands}
    for name, ratio in ratios.items():
        seconds = statistics.median(each[name] for each in rounds)
        sys.stdout.write(f"{name:<16} {seconds:.2f} s of a processor, {ratio:.1f} times importing Typer\n")
    return ratios


def processor_seconds(command: Sequence[str], environment: dict[str, str]) -> float:
    """User and system time of the process; a busy machine makes it longer, but its neighbor's as well."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        assert process.returncode == 0, errors.read().decode()
    return used.ru_utime + used.ru_stime
