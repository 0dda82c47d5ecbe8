"""`fleet api-token`: tokens of people and scripts."""

from __future__ import annotations

from typing import Annotated

import typer

from control_plane.cli import special_answers
from control_plane.cli.answers import print_answer
from control_plane.cli.common_options import Org
from control_plane.cli.completion import choices, listed
from control_plane.cli.connection import client
from control_plane.cli.derived_commands import DerivedGroup
from shared.durations import parse_duration
from shared.errors import Invalid
from shared.terminal.command_line import JsonFlag, examples, print_json, put

PANEL = "Setup"


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    DerivedGroup(
        "tokens", "api-token", "Manage API tokens for users and scripts.", PANEL, _add_create, special_answers.api_token
    ).add_to(app)


def _add_create(group: typer.Typer) -> None:
    shown = examples(
        "fleet api-token add --role operator --name ci", "fleet api-token add --role admin --user kim@example.org"
    )
    group.command("add", epilog=shown)(create)


def create(
    role: Annotated[
        str | None,
        typer.Option("--role", help="admin, operator or viewer.", autocompletion=choices("control_plane.core:Role")),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Name of the token, shown in the list.")] = "",
    user: Annotated[
        str | None,
        typer.Option(
            "--user",
            help="E-mail address of the user it belongs to (default: none, for a script).",
            autocompletion=listed("users:email"),
        ),
    ] = None,
    expires: Annotated[
        str | None, typer.Option("--expires", help="Lifetime: 30m, 1h, 7d (default: unlimited).")
    ] = None,
    everywhere: Annotated[
        bool,
        typer.Option(
            "--everywhere", help="Valid in every organization; with the role admin it can also create organizations."
        ),
    ] = False,
    bootstrap: Annotated[
        bool,
        typer.Option("--bootstrap", help="Create the first admin token of `fleet serve`, directly in the database."),
    ] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Create an API token and print only the token."""
    if bootstrap:
        _bootstrap(as_json=as_json)
        return
    if role is None:
        raise Invalid("--role is required", code="E-USAGE", next="fleet api-token add --role operator")
    from control_plane.contract.declarations.tokens import CREATE_API, ApiTokenRequest
    from control_plane.contract.validation.invalid_requests import checked

    expires_s = parse_duration(expires) if expires else None
    fields = {"role": role, "name": name, "expires_s": expires_s, "everywhere": everywhere, "user": user}
    request = checked(ApiTokenRequest, fields, form="fleet api-token add --help")
    print_answer(client(org).call(CREATE_API, request), lambda token: str(token["token"]), as_json=as_json)


def _bootstrap(*, as_json: bool) -> None:
    from control_plane.cli.server_packages import require_server

    require_server("fleet api-token add --bootstrap")
    from control_plane.core.settings import read_settings
    from control_plane.operations.access.tokens import bootstrap_admin
    from control_plane.server.assemble import open_core

    token = bootstrap_admin(open_core(read_settings()))
    if as_json:
        print_json({"token": token, "role": "admin", "everywhere": True})
    else:
        put(f"{token}\n")
