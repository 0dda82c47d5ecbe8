"""`fleet top`: drones and orders on the whole screen of a terminal, with the keys of the pages."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from control_plane.cli.board import read_board
from control_plane.cli.common_options import Org
from control_plane.cli.connection import client
from shared.errors import Invalid
from shared.terminal.command_line import examples

PANEL = "Inspect"


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("top", rich_help_panel=PANEL, epilog=examples("fleet top", "fleet top --mine"))(top)


def top(
    mine: Annotated[
        bool, typer.Option("--mine", help="Only drones that you own, and orders that you submitted.")
    ] = False,
    org: Org = None,
) -> None:
    """Watch drones and orders on the whole screen: follow an order, write to its agent, decide what waits for you."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") == "dumb":
        raise Invalid("the whole screen requires a terminal", code="E-WATCH", next="fleet status    or   fleet orders")
    fleet = client(org)
    board = read_board(fleet, mine=mine)
    from control_plane.cli.top_screen import FleetTop

    FleetTop(fleet, board, lambda: read_board(fleet, mine=mine)).run()
