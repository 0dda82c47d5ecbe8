"""`fleet token` and `fleet api-token`: tokens for drones that join, and for users and scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from control_plane.cli.answers import print_answer
from control_plane.cli.derived_commands import ByHandCommand, TypedCommand
from control_plane.cli.drones import labels
from shared.errors import Invalid
from shared.terminal.command_line import JsonFlag, print_json, print_table, put, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from control_plane.contract.declarations.operation import Operation

Doc = dict[str, Any]


def add_join_token(
    call: TypedCommand,
    *,
    serves_all: Annotated[
        bool, typer.Option("--serves-all", help="These drones work for all organizations, including future ones.")
    ] = False,
    as_json: JsonFlag = False,
) -> int:
    """Create a join token and print only the token."""
    if serves_all:
        call.fields["serves"] = ["*"]
    print_answer(call.perform(), token_alone, as_json=as_json)
    return 0


def add_api_token(
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
        if call.organization or call.fields not in ({}, {"role": "admin"}):
            raise Invalid(
                "--bootstrap takes only --role admin and --json",
                code="E-USAGE",
                why="its token is valid in all organizations and does not expire",
                next="leave out the other options, or leave out --bootstrap",
            )
        _bootstrap(as_json=as_json)
    else:
        print_answer(call.perform(), token_alone, as_json=as_json)
    return 0


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


def _declared() -> Mapping[str, Operation]:
    from control_plane.contract.declarations.tokens import CREATE_API, CREATE_JOIN

    return {"token add": CREATE_JOIN, "api-token add": CREATE_API}


ADD_JOIN = ByHandCommand(
    "token add", _declared, add_join_token, examples=("fleet token add --expires 1h --label gpu=yes",)
)
ADD_API = ByHandCommand(
    "api-token add",
    _declared,
    add_api_token,
    examples=(
        "fleet api-token add --role operator --name ci",
        "fleet api-token add --role admin --user kim@example.org",
    ),
)


def token_alone(made: Doc) -> str:
    """The text of a new token, for scripts."""
    return str(made["token"])


def print_join_tokens(tokens: list[Doc]) -> str:
    """Print the table; returns no further text."""
    rows = [
        (
            token["id"],
            token.get("owner"),
            f"{token['used']}/{token['uses']}",
            labels(token["labels"]),
            ",".join("all" if name == "*" else name for name in token["serves"]) or "-",
            token["expires_at"],
            token["revoked_at"],
        )
        for token in tokens
    ]
    columns = ("ID", "OWNER", "USED", "LABELS", "SERVES", "EXPIRES", "REVOKED")
    print_table(columns, rows, empty="no join tokens; create one: fleet token add")
    return ""


def print_api_tokens(tokens: list[Doc]) -> str:
    """Print the table; returns no further text."""
    rows = [
        (
            token["id"],
            f"{token['role']} everywhere" if token["everywhere"] else token["role"],
            token["name"],
            token.get("user"),
            token.get("made_by"),
            token["last_used_at"],
            token["expires_at"],
            token["revoked_at"],
        )
        for token in tokens
    ]
    print_table(("ID", "ROLE", "NAME", "USER", "CREATED BY", "LAST USED", "EXPIRES", "REVOKED"), rows)
    return ""


# --- what was revoked -----------------------------------------------------------------------------


def revoked_token(token: Doc) -> None:
    """Say that an API token was revoked, and what ended with it."""
    say(f"API token {token['id']} revoked")
    _say_ended(token["ended"], "fleet drone rm NAME, for each one that you do not recognize")


def removed_user(user: Doc) -> None:
    """Say that a user was removed, and what ended with their tokens."""
    say(f"user {user['email']} removed; API tokens revoked: {user['tokens']}")
    _say_ended(user["ended"], "fleet drone edit NAME --owner USER    or: fleet drone rm NAME")


def _say_ended(ended: Doc, next_for_drones: str) -> None:
    for one, many, ids in (
        ("API token created with it", "API tokens created with it", ended["api_tokens"]),
        ("join token", "join tokens", ended["join_tokens"]),
    ):
        if ids:
            say(f"also revoked: {len(ids)} {one if len(ids) == 1 else many}: {', '.join(ids)}")
    if ended["login_sessions"] or ended["login_links"]:
        say(f"logged out: {ended['login_sessions']} browsers; login links voided: {ended['login_links']}")
    if ended["drones"]:
        say(f"drones that stay: {', '.join(ended['drones'])}")
        say(f"  next  {next_for_drones}")
