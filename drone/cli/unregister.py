"""`drone unregister`: leave the fleet."""

from __future__ import annotations

from typing import Annotated

import typer

from shared.terminal.command_line import JsonFlag, confirmed, print_json, put

EXAMPLES = ("drone unregister", "drone unregister --yes")


def command(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Leave the fleet: revoke and delete the drone's keys; workspaces, runs and logs are kept."""
    from drone.installation import settings
    from drone.installation.registration import unregister

    home = settings.load().home
    name = home.config().name
    confirmed(f"Unregister drone {name}?", yes=yes)
    config = unregister(home)
    if as_json:
        print_json({"id": config.drone_id, "name": config.name, "url": config.server_url, "home": str(home.path)})
    else:
        put(f"unregistered {config.name} from {config.server_url}; its work is kept in {config.workspace}\n")
