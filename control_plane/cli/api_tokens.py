"""`fleet api-token create|ls|revoke`: tokens of people and scripts."""

from __future__ import annotations

from typing import Annotated

import typer

from control_plane.cli.connection import Org, client
from control_plane.cli.tokens import TokenId, seconds
from shared.errors import Invalid
from shared.terminal.command_line import JsonFlag, examples, group, print_json, print_table, put, say

PANEL = "Set-up"


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    commands = group("api-token", "Hand out API tokens to people and scripts.")
    shown = examples(
        "fleet api-token create --role operator --name ci", "fleet api-token create --role admin --org payments"
    )
    commands.command("add", epilog=shown)(create)
    commands.command("ls", epilog=examples("fleet api-token ls"))(list_)
    commands.command("revoke", epilog=examples("fleet api-token revoke ID"))(revoke)
    app.add_typer(commands, rich_help_panel=PANEL)


def create(
    role: Annotated[str | None, typer.Option("--role", help="admin, operator or viewer.")] = None,
    name: Annotated[str, typer.Option("--name", help="Whose it is, for the list.")] = "",
    expires: Annotated[str | None, typer.Option("--expires", help="30m, 1h, 7d; default: never.")] = None,
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="It may act in every organization; with the role admin make new ones.")
    ] = False,
    bootstrap: Annotated[
        bool, typer.Option("--bootstrap", help="The first admin of `fleet serve`, written straight to the database.")
    ] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Make an API token of an organization and print it alone."""
    if bootstrap:
        _bootstrap(as_json=as_json)
        return
    if role is None:
        raise Invalid("--role is missing", code="E-USAGE", next="fleet api-token create --role operator")
    expires_s = seconds(expires) if expires else None
    token = client(org).create_api_token(role, name=name, expires_s=expires_s, everywhere=everywhere)
    if as_json:
        print_json(token)
    else:
        put(f"{token['token']}\n")


def list_(as_json: JsonFlag = False, org: Org = None) -> None:
    """List API tokens; the secrets themselves are not kept."""
    found = client(org).list_api_tokens()
    if as_json:
        print_json(found)
        return
    rows = [
        (
            token["id"],
            f"{token['role']} everywhere" if token["everywhere"] else token["role"],
            token["name"],
            token["last_used_at"],
            token["expires_at"],
            token["revoked_at"],
        )
        for token in found
    ]
    print_table(("ID", "ROLE", "NAME", "LAST USED", "EXPIRES", "REVOKED"), rows)


def revoke(token_id: TokenId, as_json: JsonFlag = False, org: Org = None) -> None:
    """Make an API token useless at once."""
    token = client(org).revoke_api_token(token_id)
    if as_json:
        print_json(token)
    else:
        say(f"API token {token_id} is revoked")


def _bootstrap(*, as_json: bool) -> None:
    from control_plane.assemble import open_core
    from control_plane.core.settings import read_settings
    from control_plane.operations.access.tokens import bootstrap_admin

    token = bootstrap_admin(open_core(read_settings()))
    if as_json:
        print_json({"token": token, "role": "admin", "everywhere": True})
    else:
        put(f"{token}\n")
