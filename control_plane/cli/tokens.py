"""`fleet token`: join tokens, with which drones register; and tokens as text for people."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from control_plane.cli.answers import print_answer
from control_plane.cli.common_options import Org
from control_plane.cli.completion import listed
from control_plane.cli.connection import client
from control_plane.cli.derived_commands import DerivedGroup
from shared.durations import parse_duration
from shared.terminal.command_line import JsonFlag, examples, parse_labels, print_table, say

PANEL = "Drones"
Doc = dict[str, Any]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    DerivedGroup(
        "tokens",
        "token",
        "Manage join tokens, with which drones register.",
        PANEL,
        _add_create,
        lambda: {"ls": print_join_tokens},
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
