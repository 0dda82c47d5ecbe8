"""`fleet token`: join tokens, with which drones register."""

from __future__ import annotations

from typing import Annotated

import typer

from control_plane.cli import special_answers
from control_plane.cli.answers import print_answer
from control_plane.cli.common_options import Org
from control_plane.cli.completion import listed
from control_plane.cli.connection import client
from control_plane.cli.derived_commands import DerivedGroup
from shared.durations import parse_duration
from shared.terminal.command_line import JsonFlag, examples, parse_labels

PANEL = "Drones"


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    DerivedGroup(
        "tokens", "token", "Manage join tokens, with which drones register.", PANEL, _add_create, special_answers.token
    ).add_to(app)


def _add_create(group: typer.Typer) -> None:
    group.command("add", epilog=examples("fleet token add --expires 1h --label gpu=yes"))(create)


def create(
    expires: Annotated[str, typer.Option("--expires", help="Lifetime: 30m, 1h, 7d.")] = "1h",
    uses: Annotated[int, typer.Option("--uses", min=1, help="Maximum number of drones that may register with it.")] = 1,
    label: Annotated[
        list[str] | None, typer.Option("--label", help="Label k=v fixed on these drones; repeats.")
    ] = None,
    serves: Annotated[
        list[str] | None,
        typer.Option("--serves", help="Another organization that these drones also work for; repeats."),
    ] = None,
    serves_all: Annotated[
        bool, typer.Option("--serves-all", help="These drones work for all organizations, including future ones.")
    ] = False,
    owner: Annotated[
        str | None,
        typer.Option(
            "--owner",
            metavar="USER",
            help="E-mail address of the user who owns these drones (default: you).",
            autocompletion=listed("users:email"),
        ),
    ] = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Create a join token and print only the token."""
    from control_plane.contract.declarations.tokens import CREATE_JOIN, JoinTokenRequest
    from control_plane.contract.validation.invalid_requests import checked

    fields = {
        "expires_s": parse_duration(expires),
        "uses": uses,
        "labels": parse_labels(label or []),
        "serves": ["*"] if serves_all else serves or [],
        "owner": owner,
    }
    request = checked(JoinTokenRequest, fields, form="fleet token add --help")
    print_answer(client(org).call(CREATE_JOIN, request), lambda token: str(token["token"]), as_json=as_json)
