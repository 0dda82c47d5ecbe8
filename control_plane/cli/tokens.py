"""`fleet token`: join tokens, with which drones register; and tokens as text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from control_plane.cli.answers import print_answer
from control_plane.cli.derived_commands import ByHandCommand, DerivedGroup, TypedCommand
from shared.terminal.command_line import JsonFlag, print_table, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from control_plane.contract.declarations.operation import Operation

PANEL = "Drones"
Doc = dict[str, Any]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    purpose = "Manage join tokens, with which drones register."
    DerivedGroup("tokens", "token", purpose, PANEL, ADD.add_to, lambda: {"ls": print_join_tokens}).add_to(app)


def create(
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
    print_answer(call.perform(), lambda token: str(token["token"]), as_json=as_json)
    return 0


def _declared() -> Mapping[str, Operation]:
    from control_plane.contract.declarations.tokens import CREATE_JOIN

    return {"token add": CREATE_JOIN}


ADD = ByHandCommand("token add", _declared, create, examples=("fleet token add --expires 1h --label gpu=yes",))


def print_join_tokens(tokens: list[Doc]) -> str:
    """Print the table; returns no further text."""
    from control_plane.cli.drone_text import labels

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
