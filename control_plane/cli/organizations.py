"""`fleet organization export|import`: an organization as a file; and organizations as text for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from control_plane.cli.agent_text import drawn
from control_plane.cli.common_options import Org
from control_plane.cli.completion import listed
from control_plane.cli.connection import client
from control_plane.cli.exported_lines import write_lines
from shared.errors import NotFound, Precondition
from shared.terminal.command_line import JsonFlag, examples, print_json, print_table, say
from shared.terminal.output import printable

_CHUNK = 64 * 1024
Doc = dict[str, Any]


def add_commands(commands: typer.Typer) -> None:
    """Register the commands in the group `organization`."""
    commands.command("export", epilog=examples("fleet organization export payments --output payments.jsonl"))(export)
    commands.command("import", epilog=examples("fleet organization import payments.jsonl --name payments_2"))(import_)


def export(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="The organization's name.", autocompletion=listed("organizations:name")),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE|-", help="Output file (default: stdout).")
    ] = "-",
    org: Org = None,
) -> None:
    """Export an organization as JSON lines, without secrets."""
    chunks = client(org).export_organization(name)
    end = write_lines(chunks, output)
    rows = sum(end["counts"].values())
    say(f"exported {name}: {rows:,} rows, {end['totals']['runs']:,} runs")
    for left in end["left_out"]:
        say(f"not included: {printable(left)}")


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="A file written by `fleet organization export`.")],
    name: Annotated[str | None, typer.Option("--name", help="New name (default: the exported name).")] = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Create an organization from an exported file, completely or not at all. Requires a token valid everywhere."""
    if file == "-":
        made = client(org).import_organization(_pieces(sys.stdin.buffer), name=name)
    else:
        try:
            with Path(file).open("rb") as source:
                made = client(org).import_organization(_pieces(source), name=name)
        except FileNotFoundError:
            raise NotFound(
                f"file not found: {file!r}", code="E-FILE-404", next="fleet organization export NAME"
            ) from None
        except OSError as error:
            raise Precondition(f"{file!r} cannot be read", code="E-FILE", why=str(error)) from error
    if as_json:
        print_json(made)
        return
    say(f"organization {made['name']} imported: {sum(made['tasks'].values()):,} tasks, {made['totals']['runs']:,} runs")
    for warning in made["warnings"]:
        say(f"note: {printable(warning)}")


def _pieces(source: BinaryIO) -> Iterator[bytes]:
    while piece := source.read(_CHUNK):
        yield piece


def organization_lines(organization: Doc) -> str:
    """An organization, and below it its agents if the answer has them."""
    tasks = ", ".join(f"{number} {status}" for status, number in organization["tasks"].items() if number)
    totals = organization["totals"]
    lines = [
        f"organization  {organization['name']}  ({organization['acronym']}-…)",
        f"description   {printable(organization['description']) or '-'}",
        f"project       {organization['project'] or 'the only one, or set per task'}",
        *([f"reviewer      {organization['reviewer']}"] if organization["reviewer"] else []),
        f"in parallel   {organization['concurrency'] or 'unlimited'} tasks; "
        f"{organization['max_hand_offs'] or 'unlimited'} hand-offs in a row",
        *(f"limit         {name}={json.dumps(value)}" for name, value in organization.get("limits", {}).items()),
        *([f"thinking      {organization['thinking']}"] if organization.get("thinking") else []),
        f"tasks         {tasks or 'none'}",
        f"runs          {totals['runs']}, {_cost(totals['cost_usd'])}",
        *(["paused        since " + str(organization["paused_at"])] if organization["paused"] else []),
        f"agents        {organization['agent_count']}",
    ]
    return "\n".join([*lines, *([drawn(organization["agents"])] if organization["agents"] else [])])


def organization_table(organizations: list[Doc]) -> str:
    """Print the organizations as a table."""
    rows = [
        (
            each["name"],
            f"{each['acronym']}-…",
            each["agent_count"],
            each["tasks"]["open"],
            each["tasks"]["in_progress"],
            _cost(each["totals"]["cost_usd"]),
            "paused" if each["paused"] else "",
        )
        for each in organizations
    ]
    print_table(("ORGANIZATION", "TASK PREFIX", "AGENTS", "OPEN", "IN PROGRESS", "COST", ""), rows)
    return ""


def _cost(usd: float | None) -> str:
    return "price unknown" if usd is None else f"${usd:.4f}"
