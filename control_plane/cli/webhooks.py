"""`fleet webhook …`: the command and the table that are not derived."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from control_plane.cli.answers import print_answer, short_time
from control_plane.cli.common_options import Org
from control_plane.cli.completion import listed
from control_plane.cli.connection import client
from shared.terminal.command_line import JsonFlag, examples, print_table

Doc = dict[str, Any]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the webhook.", autocompletion=listed("webhooks:name"))
]


def add_others(group: typer.Typer) -> None:
    """Register the commands."""
    group.command("test", epilog=examples("fleet webhook test chat"))(try_out)


def try_out(name: Name, as_json: JsonFlag = False, org: Org = None) -> int:
    """Send fleet.test now and show the receiver's answer. Exits with 1 if it was rejected."""
    from control_plane.contract.declarations import webhooks

    delivery = client(org).call(webhooks.TEST, name=name)
    print_answer(delivery, _outcome, as_json=as_json)
    return 1 if delivery["error"] else 0


def deliveries_table(found: list[Doc]) -> None:
    """Print the messages, each with what became of it."""
    rows = [
        (each["id"], each["event"], short_time(each["created_at"]), each["attempts"], _state(each), each["error"][:60])
        for each in found
    ]
    columns = ("MESSAGE", "EVENT", "AT", "ATTEMPTS", "STATE", "ERROR")
    print_table(columns, rows, empty="no messages yet; send one: fleet webhook test NAME")


def _outcome(delivery: Doc) -> str:
    if delivery["error"]:
        return f"rejected: {delivery['error']}"
    return f"accepted: the receiver answered {delivery['status_code']}"


def _state(delivery: Doc) -> str:
    if not delivery["done_at"]:
        return f"retrying at {short_time(delivery['next_at'])}" if delivery["attempts"] else "queued"
    return "failed" if delivery["error"] else f"accepted ({delivery['status_code']})"
