"""`drone doctor`: check everything that a drone needs, and report how to fix problems."""

from __future__ import annotations

from typing import Annotated

import typer

from shared.terminal.command_line import JsonFlag

EXAMPLES = ("drone doctor", "drone doctor --fix", "drone doctor --sandbox")


def command(
    fix: Annotated[bool, typer.Option("--fix", help="Fix problems that can be fixed safely.")] = False,
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Try to break out of the sandbox instead, and show what held.")
    ] = False,
    as_json: JsonFlag = False,
) -> int:
    """Check this drone's requirements; name each problem and its fix."""
    from drone.installation import settings
    from drone.installation.doctor import examine, try_break_outs
    from shared.terminal.doctor import run_doctor

    chosen = settings.load()
    return run_doctor(lambda: (try_break_outs if sandbox else examine)(chosen), fix=fix, as_json=as_json)
