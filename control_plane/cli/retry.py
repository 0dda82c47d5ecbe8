"""`fleet retry` and `fleet resume`: run a failed or canceled order again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from control_plane.cli.derived_commands import ByHandCommand, TypedCommand
from control_plane.cli.orders import PANEL, follow_to_the_end
from shared.terminal.command_line import JsonFlag, print_json, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from control_plane.contract.declarations.operation import Operation

FollowFlag = Annotated[bool, typer.Option("--follow", help="Follow the order until it ends; exit with its outcome.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    for command in COMMANDS:
        command.add_to(app)


def retry(call: TypedCommand, *, follow: FollowFlag = False, as_json: JsonFlag = False) -> int:
    """Retry a failed or canceled order from the beginning, in a new workspace."""
    return _print_or_follow(call, follow=follow, as_json=as_json)


def resume(call: TypedCommand, *, follow: FollowFlag = False, as_json: JsonFlag = False) -> int:
    """Resume a failed or canceled order from its last complete step. Its limits start over."""
    return _print_or_follow(call, follow=follow, as_json=as_json)


def _print_or_follow(call: TypedCommand, *, follow: bool, as_json: bool) -> int:
    order = call.perform()
    if follow:
        return follow_to_the_end(call.fleet, order["id"], as_json=as_json)
    if as_json:
        print_json(order)
        return 0
    say(f"{order['id']} {order['status']}: {order['reason']}")
    say(f"  next  fleet follow {order['id']}")
    return 0


def _declared() -> Mapping[str, Operation]:
    from control_plane.contract.declarations.orders import RESUME, RETRY

    return {"retry": RETRY, "resume": RESUME}


COMMANDS = (
    ByHandCommand("retry", _declared, retry, PANEL, ("fleet retry ORDER --follow",)),
    ByHandCommand(
        "resume",
        _declared,
        resume,
        PANEL,
        ("fleet resume ORDER --follow", "fleet resume ORDER --max-iterations 100 --say 'Mind the tests'"),
    ),
)
