"""`fleet drones`, and the group `fleet drone`."""

from __future__ import annotations

from typing import Annotated

import typer

from control_plane.cli import special_answers
from control_plane.cli.common_options import Org
from control_plane.cli.connection import client
from control_plane.cli.derived_commands import DerivedGroup
from shared.terminal.command_line import JsonFlag, examples, print_json
from shared.terminal.watch import WatchFlag, watched

PANEL = "Drones"


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("drones", rich_help_panel=PANEL, epilog=examples("fleet drones --json"))(drones)
    DerivedGroup(
        "drones",
        "drone",
        "Show a drone, drain it, give it to another user or remove it.",
        PANEL,
        texts=special_answers.drone,
    ).add_to(app)


def drones(
    mine: Annotated[bool, typer.Option("--mine", help="Only drones that you own.")] = False,
    watch: WatchFlag = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """List the drones."""
    from control_plane.cli.drone_text import print_drones
    from control_plane.contract.declarations.drones import LIST, DroneFilter

    fleet = client(org)
    show = print_json if as_json else print_drones
    watched(lambda: show(fleet.call(LIST, DroneFilter(mine=mine))), watch=watch, as_json=as_json)
