"""`fleet trajectory, export`: an order as a file, for other tools and for people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from control_plane.cli.common_options import Org
from control_plane.cli.connection import client
from control_plane.cli.orders import OrderId
from shared.errors import Precondition
from shared.terminal.command_line import JsonFlag, examples, print_json, say
from shared.terminal.output import content_writer

PANEL = "Orders"


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    shown = examples("fleet trajectory ORDER --output RUN.traj.json", "drone replay RUN.traj.json --repo .")
    app.command("trajectory", rich_help_panel=PANEL, epilog=shown)(trajectory)
    shown = examples("fleet export ORDER", "fleet export ORDER --output review.html")
    app.command("export", rich_help_panel=PANEL, epilog=shown)(export)


def trajectory(
    order_id: OrderId,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write to this file instead of stdout.")
    ] = None,
    run: Annotated[
        str | None, typer.Option("--run", help="Id of the run (default: the run whose work was kept).")
    ] = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Print the trajectory of a run in the format mini-swe-agent-1.1."""
    content = client(org).trajectory(order_id, run)
    if output is None:
        # The output is a document in any case; `--json` changes nothing.
        content_writer()(content + b"\n")
        return
    _write(output, content + b"\n")
    messages = len(json.loads(content)["messages"])
    if as_json:
        print_json({"order": order_id, "file": str(output.absolute()), "messages": messages, "bytes": len(content) + 1})
    else:
        say(f"{messages} messages written to {output}")


def export(
    order_id: OrderId,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="File to write; `-` is stdout (default: ORDER.html)."),
    ] = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Write an order as one HTML file to hand on: prompt, result, changes and conversation. It needs no server."""
    name, content = client(org).export(order_id)
    if output == "-":
        content_writer()(content)
        return
    file = Path(output or name)
    _write(file, content)
    if as_json:
        print_json({"order": order_id, "file": str(file.absolute()), "bytes": len(content)})
    else:
        say(f"{len(content):,} bytes written to {file}")


def _write(output: Path, content: bytes) -> None:
    try:
        output.write_bytes(content)
    except OSError as error:
        raise Precondition(
            f"{output} cannot be written", code="E-OUTPUT", why=error.strerror or str(error), next="choose another FILE"
        ) from error
