"""`fleet pull-request`: open one for an order or a task."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from control_plane.cli.answers import print_answer
from control_plane.cli.common_options import Org
from control_plane.cli.completion import listed
from control_plane.cli.connection import client
from shared.terminal.command_line import JsonFlag, examples

PANEL = "Orders"
_TASK = re.compile(r"[A-Z][A-Z0-9]*-[0-9]+", re.IGNORECASE)


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command(
        "pull-request",
        rich_help_panel=PANEL,
        epilog=examples("fleet pull-request ORDER", "fleet pull-request PAYM-0001 --draft"),
    )(pull_request)


def pull_request(
    what: Annotated[
        str,
        typer.Argument(
            metavar="ORDER|TASK",
            help="An order whose branch was pushed, or a task.",
            autocompletion=listed("orders:id|@last"),
        ),
    ],
    draft: Annotated[bool, typer.Option("--draft", help="Open as a draft.")] = False,
    title: Annotated[str | None, typer.Option("--title", help="Title (default: from the work).")] = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Open a pull request from a drone's workstation, or update the open one."""
    from control_plane.contract.declarations import pull_requests

    request = pull_requests.PullRequestRequest(title=title, draft=draft)
    if _TASK.fullmatch(what):
        order = client(org).call(pull_requests.FOR_TASK, request, task_id=what)
    else:
        order = client(org).call(pull_requests.FOR_ORDER, request, order_id=what)
    print_answer(order, _asked, as_json=as_json)


def _asked(order: dict[str, Any]) -> str:
    asked = order["pull_request"]
    return (
        f"Requested a pull request from {asked['head']}: {asked['title']}\n"
        f"order {asked['order']} will open it: fleet follow {asked['order']}    then: fleet show {order['id']}\n"
    )
