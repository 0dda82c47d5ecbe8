"""`fleet status`: the whole fleet at a glance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from control_plane.cli.answers import cost, print_answer
from control_plane.cli.budget_text import near
from control_plane.cli.common_options import Org
from control_plane.cli.connection import client
from shared.terminal.command_line import JsonFlag, examples
from shared.terminal.watch import WatchFlag, watched

PANEL = "Inspect"
Doc = dict[str, Any]


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("status", rich_help_panel=PANEL, epilog=examples("fleet status", "fleet status --json"))(status)


def status(watch: WatchFlag = False, as_json: JsonFlag = False, org: Org = None) -> None:
    """Show drones, orders, tasks and cost of the organization."""
    from control_plane.contract.declarations import organizations

    fleet = client(org)
    watched(
        lambda: print_answer(fleet.call(organizations.STATUS), _lines, as_json=as_json), watch=watch, as_json=as_json
    )


def _lines(found: Doc) -> str:
    totals = found["totals"]
    unknown = totals["unknown_costs"] if totals["cost_usd"] is not None else 0
    more = f", {unknown} at unknown price" if unknown else ""
    paused = f", paused: fleet organization resume {found['organization']}" if found["paused"] else ""
    lines = [
        f"server   {found['server']} ({found['version']})",
        f"org      {found['organization']}{paused}",
        f"drones   {counts(found['drones'], 'none; add one: fleet token add, then drone register on its machine')}",
        f"orders   {counts(found['orders'], 'none active')}",
        f"tasks    {counts(found['tasks'], 'none')}",
        f"runs     {found['active_runs']} running; capacity {found['max_concurrency']}",
        f"cost     {cost(totals['cost_usd'])} for {totals['runs']} {'run' if totals['runs'] == 1 else 'runs'}{more}",
        f"tokens   {totals['input_tokens']:,} in, {totals['output_tokens']:,} out",
        *(f"budget   {near(each)}" for each in found["budgets"]),
    ]
    return "\n".join(lines)


def counts(by_word: Mapping[str, int], none: str) -> str:
    """`2 online, 1 busy`; zeros are left out."""
    shown = [f"{count} {word.replace('_', ' ')}" for word, count in by_word.items() if count]
    return ", ".join(shown) or none
