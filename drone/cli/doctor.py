"""`drone doctor`: check everything that a drone needs, and report how to fix problems."""

from __future__ import annotations

from typing import Annotated

import typer

from shared.terminal.command_line import JsonFlag

EXAMPLES = ("drone doctor", "drone doctor --fix", "drone doctor --json")


def command(
    fix: Annotated[bool, typer.Option("--fix", help="Apply the fixes that can lose nothing.")] = False,
    as_json: JsonFlag = False,
) -> int:
    """Check what this drone needs, with one fix for each thing that is not well."""
    from drone.installation import settings
    from drone.installation.doctor import examine
    from shared.terminal.doctor import run_doctor

    chosen = settings.load()
    return run_doctor(lambda: examine(chosen), fix=fix, as_json=as_json)
