"""`drone unregister`: leave the fleet."""

from __future__ import annotations

from typing import Annotated

import typer

from shared.terminal.command_line import JsonFlag, confirmed, print_json, put

EXAMPLES = ("drone unregister", "drone unregister --yes")


def command(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Leave the fleet: the drone's keys are revoked there and removed here; workspaces, runs and logs stay."""
    from drone.installation import settings
    from drone.installation.registration import unregister

    home = settings.load().home
    name = home.config().name
    confirmed(f"Unregister the drone {name}?", yes=yes)
    config = unregister(home)
    if as_json:
        print_json({"id": config.drone_id, "name": config.name, "url": config.server_url, "home": str(home.path)})
    else:
        put(f"{config.name} has left {config.server_url}; what it worked on is still in {config.workspace}\n")
