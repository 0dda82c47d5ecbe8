"""Reads the documents and the source tree, for the tests that compare them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from typer.core import TyperGroup

import shared
from control_plane.cli.main import app as fleet_app
from drone.cli.main import app as drone_app
from tests.support.command_tree import built

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("control_plane", "drone", "shared")
INSTALLED = Path(shared.__file__).resolve().parents[1]
"""Where the packages under test are: in the checkout, or where the wheel is installed."""


@cache
def texts() -> dict[Path, str]:
    """The product's modules by their paths; migrations are left out, they are history."""
    found = sorted(path for package in PACKAGES for path in (INSTALLED / package).rglob("*.py"))
    return {path: path.read_text(encoding="utf-8") for path in found if "migrations" not in path.parts}


@cache
def pages() -> dict[Path, str]:
    """The documents by their paths."""
    found = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
    return {path: path.read_text(encoding="utf-8") for path in found}


def examples() -> Iterator[list[str]]:
    """Each command in a `sh` block of the documents, in words; also those inside `$(...)` or after `|` and `&&`."""
    for page in pages().values():
        yield from commands_in(page)


def commands_in(page: str) -> Iterator[list[str]]:
    """Each command in a `sh` block of a page, in words."""
    for block in re.findall(r"(?s)```sh\n(.*?)```", page):
        for line in re.sub(r"\\\n|\s#.*", " ", block).splitlines():
            inner = re.sub(r".*\$\((.*)\).*", r"\1", line)
            yield from (shlex.split(part) for part in re.split(r"\||&&", inner) if part.strip())


def parse(words: Sequence[str]) -> list[str]:
    """Parse a `fleet` or `drone` command line completely, without running it; the names of its commands in the help.

    Raises the command line's own error for an unknown command, an unknown option or an invalid value.
    """
    command = built({"fleet": fleet_app, "drone": drone_app}[words[0]])
    context, names = command.make_context(words[0], list(words[1:])), [words[0]]
    while isinstance(command, TyperGroup):
        # click keeps the word that selects the command separately.
        group = command
        typed, command, rest = group.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(typed, rest, parent=context)
        names.append(next(name for name, each in group.commands.items() if each is command))
    return names
