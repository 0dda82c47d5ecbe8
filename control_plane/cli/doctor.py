"""`fleet doctor`: what was found, what is wrong with it, and a fix for each problem."""

from __future__ import annotations

from typing import Annotated

import typer

from control_plane.cli.common_options import Org
from shared.terminal.command_line import JsonFlag, examples

PANEL = "Inspect"


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("doctor", rich_help_panel=PANEL, epilog=examples("fleet doctor", "fleet doctor --json"))(doctor)


def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Fix problems that can be fixed safely.")] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> int:
    """Check broker, database, sandbox, Python and more; name each problem and its fix."""
    from control_plane.cli.local_checks import diagnose

    return diagnose(org, fix=fix, as_json=as_json)
