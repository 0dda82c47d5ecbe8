"""The whole tree of a command line, for tests that apply to every command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import typer

from tests.support import warm_processes
from tests.support.warm_processes import DRONE, FLEET

BIN = Path(sys.executable).parent
PROGRAMS = {"fleet": FLEET, "drone": DRONE}
TIMEOUT_S = 60


@dataclass(frozen=True)
class Node:
    """One command or group: the words that lead to it, and click's object."""

    words: tuple[str, ...]
    command: Any

    @property
    def name(self) -> str:
        return " ".join(self.words) or "(top)"

    @property
    def is_group(self) -> bool:
        return hasattr(self.command, "commands")

    @property
    def options(self) -> set[str]:
        """Every option as typed: `--json`, `-y`."""
        return {spelling for param in self.command.params for spelling in param.opts if spelling.startswith("-")}


def walk(app: typer.Typer) -> list[Node]:
    """The application, its groups and its commands, outermost first."""
    return list(_below((), built(app)))


@cache
def built(app: typer.Typer) -> Any:
    """The application as click has it, built once: that takes 50 ms."""
    return typer.main.get_command(app)


def commands(app: typer.Typer) -> list[Node]:
    """The commands that a user can run: every node that is not a group."""
    return [node for node in walk(app) if not node.is_group]


def invoke(
    program: str,
    *words: str,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    cwd: Path | None = None,
    seconds: float = TIMEOUT_S,
) -> subprocess.CompletedProcess[str]:
    """Run `program` as a user would, to its end, without a terminal."""
    environment = {**clean_environment(), **(env or {})}
    return warm_processes.run([*PROGRAMS[program], *words], environment, stdin, cwd=cwd, seconds=seconds)


def imported_by(program: str, *words: str) -> set[str]:
    """The names of all modules that running `program words` imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", str(BIN / program), *words],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=clean_environment(),
        check=False,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


def clean_environment() -> dict[str, str]:
    """The environment without variables that would change the output: the fleet's own and those for colour."""
    unwanted = ("FLEET_", "DRONE_", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "_TYPER")
    return {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}


def _below(words: Sequence[str], command: Any) -> Iterator[Node]:
    yield Node(tuple(words), command)
    for name, child in getattr(command, "commands", {}).items():
        yield from _below((*words, name), child)
