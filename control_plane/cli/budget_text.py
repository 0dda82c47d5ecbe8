"""Budgets as text for people."""

from __future__ import annotations

from typing import Any

from control_plane.cli.answers import short_time
from shared.terminal.command_line import print_table, say
from shared.terminal.output import printable

Doc = dict[str, Any]


def amount(usd: float) -> str:
    """`$0.42`, or `$0.4217` where hundredths of a cent matter."""
    text = f"{usd:,.4f}"
    return f"${text[:-2]}{text[-2:].rstrip('0')}"


def budget_table(budgets: list[Doc]) -> str:
    """Print the budgets as a table."""
    rows = [
        (
            each["kind"],
            each["name"],
            each["per"],
            amount(each["limit_usd"]),
            amount(each["spent_usd"]),
            amount(each["reserved_usd"]),
            _left(each),
            f"{each['percent']:g} %",
            amount(each["forecast_usd"]) if each["forecast_usd"] is not None else None,
            each["state"],
            each["refuses"],
        )
        for each in budgets
    ]
    columns = ("KIND", "NAME", "PER", "LIMIT", "SPENT", "RESERVED", "LEFT", "USED", "FORECAST", "STATE", "REFUSES NOW")
    print_table(columns, rows, empty="no budgets: spending is not limited; fleet budget set creates one")
    return ""


def budget_lines(budget: Doc) -> str:
    """One budget in full."""
    lines = [
        f"budget    {budget['kind']} {printable(budget['name'])}, per {budget['per']} ({budget['zone']})"
        if budget["per"] != "total"
        else f"budget    {budget['kind']} {printable(budget['name'])}, in total",
        f"state     {budget['state']}",
        f"limit     {amount(budget['limit_usd'])}",
        f"spent     {amount(budget['spent_usd'])} ({budget['percent']:g} %)",
        f"reserved  {amount(budget['reserved_usd'])}",
        f"left      {_left(budget)}",
    ]
    if budget["forecast_usd"] is not None:
        lines.append(f"forecast  {amount(budget['forecast_usd'])} by the end of the period")
    if budget["period_ends_at"]:
        lines.append(f"period    {short_time(budget['period_begins_at'])} to {short_time(budget['period_ends_at'])}")
    return "\n".join([*lines, f"refuses   {printable(budget['refuses'])}"]) + "\n"


def target_lines(found: Doc) -> str:
    """The budgets of one target."""
    return "\n".join(budget_lines(budget) for budget in found["budgets"])


def near(budget: Doc) -> str:
    """A budget of which little is left, in one line."""
    of = f"{budget['kind']} {printable(budget['name'])} {_period(budget)}"
    return f"{of}: {budget['state']}, {amount(budget['spent_usd'])} of {amount(budget['limit_usd'])} spent"


def removed(found: Doc) -> None:
    """Say what was removed."""
    periods = " and ".join(map(_period, found["budgets"]))
    say(f"budget of {found['kind']} {printable(found['name'])} {periods} removed")


def _period(budget: Doc) -> str:
    return "in total" if budget["per"] == "total" else f"per {budget['per']}"


def _left(budget: Doc) -> str:
    if budget["spent_usd"] > budget["limit_usd"]:
        return f"lowered below what is spent: {amount(budget['spent_usd'])} of {amount(budget['limit_usd'])}"
    return amount(budget["left_usd"])
