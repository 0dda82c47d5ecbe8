"""`fleet mcp` and `fleet install-skill`: the fleet for models in other programs."""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from control_plane.cli.common_options import Org
from control_plane.cli.connection import organization, selected_server
from shared.terminal.command_line import JsonFlag, examples, print_json, say

PANEL = "Integrations"


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("mcp", rich_help_panel=PANEL, epilog=examples("fleet mcp", "fleet mcp --org payments"))(mcp)
    app.command(
        "install-skill",
        rich_help_panel=PANEL,
        epilog=examples("fleet install-skill", "fleet install-skill --path ~/.claude/skills"),
    )(install_skill)


def mcp(org: Org = None) -> None:
    """Serve the fleet's tools to an MCP client over stdin and stdout.

    The client starts this command; docs/mcp-server.md describes the setup. While the control plane is unavailable,
    every call fails.
    """
    import anyio

    from control_plane.web.mcp_server.proxy import Upstream, serve

    if sys.stdin.isatty():
        say("waiting for an MCP client on stdin and stdout (see docs/mcp-server.md); stop with Ctrl-C")
    # The thread that reads stdin cannot be interrupted, and there is nothing to clean up.
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    anyio.run(partial(serve, Upstream(selected_server, organization(org))))


def install_skill(
    path: Annotated[
        Path | None,
        typer.Option(
            "--path",
            help="Directory of the skills.  [default: .claude/skills if .claude exists, else .agents/skills]",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a changed file.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Install the skill that teaches coding assistants to use the fleet in a project.

    A changed file is kept unless --force is given.
    """
    from control_plane.web.mcp_server.skill import install, skills_directory

    done = install(path or skills_directory(Path()), force=force)
    if as_json:
        print_json({"path": str(done.path), "outcome": done.outcome})
    else:
        say(f"{done.path} {done.sentence}")
