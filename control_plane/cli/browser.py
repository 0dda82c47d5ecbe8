"""`fleet open, login-link`: the pages in a browser, logged in without pasting a token."""

from __future__ import annotations

import webbrowser
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from control_plane.cli.answers import print_answer
from control_plane.cli.common_options import Org
from control_plane.cli.completion import listed
from control_plane.cli.connection import client
from shared.errors import NotFound
from shared.terminal.command_line import JsonFlag, examples, put, say

if TYPE_CHECKING:
    from control_plane.contract.client.fleet import FleetClient

PANEL = "Inspect"
_PAGES = {"": "/", "board": "/", "sessions": "/sessions", "flower": "/flower/"}


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("open", rich_help_panel=PANEL, epilog=examples("fleet open", "fleet open @last"))(open_page)
    app.command("login-link", rich_help_panel=PANEL, epilog=examples("fleet login-link"))(login_link)


def open_page(
    page: Annotated[
        str,
        typer.Argument(
            metavar="[THING]",
            help="An order, a session, `sessions` or `flower`; default: the inbox.",
            autocompletion=listed("orders:id|@last|sessions|flower"),
        ),
    ] = "",
    org: Org = None,
) -> None:
    """Open a page in the browser, logged in. Prints its address if no browser can be started."""
    from control_plane.contract.declarations import tokens

    with client(org) as fleet:
        path = _PAGES[page] if page in _PAGES else _path(fleet, page)
        link = f"{fleet.call(tokens.CREATE_LOGIN_LINK)['url']}&next={quote(path, safe='')}"
    if not webbrowser.open(link):
        say("No browser could be started. Open this link; it works once, within 15 minutes:")
        put(f"{link}\n")


def login_link(as_json: JsonFlag = False, org: Org = None) -> None:
    """Print a link that logs in one browser, once, within 15 minutes."""
    from control_plane.contract.declarations import tokens

    with client(org) as fleet:
        answer = fleet.call(tokens.CREATE_LOGIN_LINK)
    print_answer(answer, lambda link: str(link["url"]), as_json=as_json)


def _path(fleet: FleetClient, thing: str) -> str:
    """The page of an order, or else of a session. Raises NotFound."""
    from control_plane.contract.declarations import orders, sessions

    try:
        return f"/orders/{fleet.call(orders.SHOW, order_id=thing)['id']}"
    except NotFound as no_order:
        try:
            return f"/sessions/{fleet.call(sessions.SHOW, session_id=thing)['id']}"
        except NotFound:
            raise no_order from None
