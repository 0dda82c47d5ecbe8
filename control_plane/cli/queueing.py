"""`fleet move, prioritize`: which drone runs a waiting order, and when."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from control_plane.cli.common_options import Org
from control_plane.cli.completion import listed
from control_plane.cli.connection import client
from control_plane.cli.orders import PANEL, OrderId
from shared.terminal.command_line import JsonFlag, examples, print_json, say


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("move", rich_help_panel=PANEL, epilog=examples("fleet move ORDER --drone mila"))(move)
    app.command("prioritize", rich_help_panel=PANEL, epilog=examples("fleet prioritize ORDER --priority 10"))(
        prioritize
    )


def move(
    order_id: OrderId,
    drone: Annotated[
        str | None,
        typer.Option(
            "--drone", help="The drone's name (default: any that fits).", autocompletion=listed("drones:name")
        ),
    ] = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Move an order that has not started to another drone."""
    from control_plane.declarations.orders import MOVE, MoveRequest

    _print(client(org).call(MOVE, MoveRequest(drone=drone), order_id=order_id), as_json=as_json)


def prioritize(
    order_id: OrderId,
    priority: Annotated[str, typer.Option("--priority", metavar="<int>", help="-100 to 100; higher runs first.")],
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Change the priority of an order, and with it the order in which waiting orders start."""
    from control_plane.declarations.orders import SET_PRIORITY, PriorityRequest
    from control_plane.validation.invalid_requests import checked

    request = checked(PriorityRequest, {"priority": priority}, form="fleet prioritize --help")
    _print(client(org).call(SET_PRIORITY, request, order_id=order_id), as_json=as_json)


def _print(order: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(order)
    else:
        say(f"{order['id']} {order['status']}, priority {order['priority']}: {order['reason']}")
