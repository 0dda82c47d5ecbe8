"""`fleet cost`: what was spent, as a table with a total, as JSON, or as CSV."""

from __future__ import annotations

import csv
import io
from typing import Annotated, Any

import typer

from control_plane.cli.common_options import Org
from control_plane.cli.completion import choices
from control_plane.cli.connection import client
from shared.errors import Invalid
from shared.terminal.command_line import JsonFlag, examples, print_json, print_table, say
from shared.terminal.output import content_writer

PANEL = "Inspect"
Doc = dict[str, Any]
_NANODOLLARS = 1_000_000_000
_SHOWN = ("fleet cost --since 2026-11-01 --by project", "fleet cost --zone Europe/Berlin --csv")


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("cost", rich_help_panel=PANEL, epilog=examples(*_SHOWN))(cost)


def cost(
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only from this day or time on (default: all).")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Only up to and including this day, or before this time."),
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="WORD",
            help="Sum by day, project, agent, model, drone, user or organization.",
            autocompletion=choices("control_plane.contract.declarations.costs:By"),
        ),
    ] = "day",
    zone: Annotated[str, typer.Option("--zone", metavar="ZONE", help="IANA time zone in which days begin.")] = "UTC",
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV (RFC 4180) with a header.")] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Show what was spent and what is reserved now, by day, project, agent, model, drone or user, with a total.

    Money counts on the day on which a run reserved it.
    """
    from control_plane.contract.declarations import costs
    from control_plane.contract.validation.invalid_requests import checked

    if as_csv and as_json:
        raise Invalid("--csv and --json cannot be used together", code="E-USAGE", next="leave one of them out")
    given = {"since": since, "until": until, "by": by, "zone": zone}
    found = client(org).call(costs.LIST, checked(costs.CostFilter, given, form="fleet cost --help"))
    if as_json:
        print_json(found)
    elif as_csv:
        # As bytes: each line ends with CR LF.
        content_writer()(_csv(found, by).encode())
    else:
        _print_table(found, by)


def _print_table(found: list[Doc], by: str) -> None:
    rows: list[tuple[Any, ...]] = [
        (each["name"], _money(each["spent_usd"]), _money(each["reserved_usd"]), each["runs"]) for each in found
    ]
    if rows:
        # Not the runs: one that spent money on two days, or on two models, is in two rows.
        rows.append(("total", *(_money(_total(found, field)) for field in ("spent_usd", "reserved_usd")), None))
    print_table((by.upper(), "SPENT", "RESERVED", "RUNS"), rows, empty="no cost in this time")
    if unknown := sum(each["unknown_costs"] for each in found):
        runs = "1 run of a model" if unknown == 1 else f"{unknown:,} runs of models"
        say(f"not included: {runs} without a known price; set one: fleet price set MODEL --input USD --output USD")


def _csv(found: list[Doc], by: str) -> str:
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow((by, "spent_usd", "reserved_usd", "runs", "unknown_costs"))
    for each in found:
        amounts = (_exact(each["spent_usd"]), _exact(each["reserved_usd"]))
        rows.writerow((each["name"] or "", *amounts, each["runs"], each["unknown_costs"]))
    return text.getvalue()


def _total(found: list[Doc], field: str) -> float:
    """Exact: whole nanodollars are added."""
    nusd: int = sum(round(each[field] * _NANODOLLARS) for each in found)
    return nusd / _NANODOLLARS


def _money(usd: float) -> str:
    return f"${usd:,.4f}"


def _exact(usd: float) -> str:
    """All digits of an amount, at least two of them after the point."""
    text = f"{usd:.9f}"
    return text[:-7] + text[-7:].rstrip("0")
