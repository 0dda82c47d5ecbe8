"""Organizations as text: one with its agents, and all of them."""

from __future__ import annotations

import json
from typing import Any

from control_plane.cli.agent_text import drawn
from shared.terminal.command_line import print_table
from shared.terminal.output import printable

Doc = dict[str, Any]


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
