"""`fleet api-token`: tokens of people and scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from control_plane.cli import special_answers
from control_plane.cli.answers import print_answer
from control_plane.cli.derived_commands import ByHandCommand, DerivedGroup, TypedCommand
from shared.terminal.command_line import JsonFlag, print_json, put

if TYPE_CHECKING:
    from collections.abc import Mapping

    from control_plane.contract.declarations.operation import Operation

PANEL = "Setup"


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    purpose = "Manage API tokens for users and scripts."
    DerivedGroup("tokens", "api-token", purpose, PANEL, ADD.add_to, special_answers.api_token).add_to(app)


def create(
    call: TypedCommand,
    *,
    bootstrap: Annotated[
        bool,
        typer.Option("--bootstrap", help="Create the first admin token of `fleet serve`, directly in the database."),
    ] = False,
    as_json: JsonFlag = False,
) -> int:
    """Create an API token and print only the token."""
    if bootstrap:
        _bootstrap(as_json=as_json)
    else:
        print_answer(call.perform(), lambda token: str(token["token"]), as_json=as_json)
    return 0


def _declared() -> Mapping[str, Operation]:
    from control_plane.contract.declarations.tokens import CREATE_API

    return {"api-token add": CREATE_API}


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


ADD = ByHandCommand(
    "api-token add",
    _declared,
    create,
    examples=(
        "fleet api-token add --role operator --name ci",
        "fleet api-token add --role admin --user kim@example.org",
    ),
)
