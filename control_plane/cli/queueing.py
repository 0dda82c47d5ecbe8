"""`fleet move, prioritize`: which drone runs a waiting order, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from control_plane.cli.derived_commands import ByHandCommand, TypedCommand
from control_plane.cli.orders import PANEL
from shared.terminal.command_line import JsonFlag, print_json, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from control_plane.contract.declarations.operation import Operation


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    for command in COMMANDS:
        command.add_to(app)


def move(call: TypedCommand, *, as_json: JsonFlag = False) -> int:
    """Move an order that has not started to another drone."""
    return _print(call, as_json=as_json)


def prioritize(call: TypedCommand, *, as_json: JsonFlag = False) -> int:
    """Change the priority of an order, and with it the order in which waiting orders start."""
    return _print(call, as_json=as_json)


def _print(call: TypedCommand, *, as_json: bool) -> int:
    order = call.perform()
    if as_json:
        print_json(order)
    else:
        say(f"{order['id']} {order['status']}, priority {order['priority']}: {order['reason']}")
    return 0


def _declared() -> Mapping[str, Operation]:
    from control_plane.contract.declarations.orders import MOVE, SET_PRIORITY

    return {"move": MOVE, "prioritize": SET_PRIORITY}


COMMANDS = (
    ByHandCommand("move", _declared, move, PANEL, ("fleet move ORDER --drone mila",)),
    ByHandCommand("prioritize", _declared, prioritize, PANEL, ("fleet prioritize ORDER --priority 10",)),
)
