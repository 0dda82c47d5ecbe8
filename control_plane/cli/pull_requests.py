"""`fleet pull-request`: open one for an order or a task."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from control_plane.cli.connection import Org, client
from shared.terminal.command_line import JsonFlag, examples, print_json, put

PANEL = "Orders"


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command(
        "pull-request",
        rich_help_panel=PANEL,
        epilog=examples("fleet pull-request ORDER", "fleet pull-request PAYM-0001 --draft"),
    )(pull_request)


def pull_request(
    what: Annotated[str, typer.Argument(metavar="ORDER|TASK", help="An order whose branch was pushed, or a task.")],
    draft: Annotated[bool, typer.Option("--draft", help="Open it as a draft.")] = False,
    title: Annotated[str | None, typer.Option("--title", help="Default: what the work is about.")] = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Open a pull request from a drone's workstation, or bring the open one up to date."""
    order = client(org).open_pull_request(what, draft=draft, title=title)
    if as_json:
        print_json(order)
        return
    asked: dict[str, Any] = order["pull_request"]
    put(
        f"asked for a pull request from {asked['head']}: {asked['title']}\n"
        f"order {asked['order']} opens it: fleet follow {asked['order']}    then: fleet show {order['id']}\n"
    )
