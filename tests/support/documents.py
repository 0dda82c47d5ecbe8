"""Reads the documents and the source tree, for the tests that compare them."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
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
OURS = ("deploy", "docs", "tests", ".ci")
CODE = re.compile(r"""["'](E-[A-Z0-9]+(?:-[A-Z0-9]+)*)["']""")
MADE_CODE = re.compile(r"""f["'](E-[A-Z0-9-]*\{[^"']*)["']""")


@cache
def sources() -> list[tuple[Path, str]]:
    """Every text file of the project with its content: at the top level and in its directories."""
    top = [(path, ROOT) for path in ROOT.iterdir() if path.is_file() and path.suffix != ".lock"]
    rooms = [*((ROOT, name) for name in OURS), *((INSTALLED, name) for name in PACKAGES)]
    below = [(path, room) for room, name in rooms for path in (room / name).rglob("*") if path.is_file()]
    kept = [each for each in [*top, *below] if not {"__pycache__", "node_modules"} & {*each[0].parts}]
    return [(path.relative_to(room), text) for path, room in sorted(kept) if (text := _text(path)) is not None]


@cache
def modules() -> dict[Path, ast.Module]:
    """The syntax trees of the product's modules, by their paths; migrations are left out, they are history."""
    found = sorted(path for package in PACKAGES for path in (INSTALLED / package).rglob("*.py"))
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in found if "migrations" not in path.parts}


def dependencies() -> set[str]:
    """Names of all packages that pyproject.toml requires, including those for development."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    return {re.split(r"[^A-Za-z0-9_.-]", one)[0].lower() for one in wanted}


def table_rows(document: Path, *, after: str) -> list[str]:
    """First cells of the tables after a heading, without their header rows."""
    text = document.read_text(encoding="utf-8").partition(after)[2]
    return [cell for cell in re.findall(r"(?m)^\| ([^|]+?) \|", text) if cell not in {"package", "---"}]


def links(document: Path) -> list[str]:
    """Relative targets of a Markdown document's links, without their anchors."""
    found = re.findall(r"\]\(([^)]+)\)", document.read_text(encoding="utf-8"))
    return [link.partition("#")[0] for link in found if not link.startswith(("http", "#"))]


def headings(document: Path) -> list[str]:
    """Error codes that have their own heading; its anchor is the code in lower case."""
    return re.findall(r"(?m)^#+ (E-[A-Z0-9-]+)$", document.read_text(encoding="utf-8"))


def error_codes() -> set[str]:
    """Every error code in the three packages."""
    return {code for path, text in sources() if path.parts[0] in PACKAGES for code in CODE.findall(text)}


def code_families() -> set[str]:
    """Patterns of the codes that are assembled at run time: `E-{what}-404` as `E-[A-Z0-9]+-404`."""
    made = {made for path, text in sources() if path.parts[0] in PACKAGES for made in MADE_CODE.findall(text)}
    return {re.sub(r"\{[^}]*\}", "[A-Z0-9]+", code) for code in made}


def examples() -> Iterator[list[str]]:
    """Each command in a `sh` block of the documents, in words; also those inside `$(...)` or after `|` and `&&`."""
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]):
        yield from commands_in(page.read_text(encoding="utf-8"))


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


def _text(path: Path) -> str | None:
    """A file's text; None if it is not text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
