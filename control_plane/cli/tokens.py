"""`fleet token create|ls|revoke`: join tokens, with which drones register."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from control_plane.cli.connection import Org, client
from control_plane.cli.drone_text import labels
from shared.errors import Invalid
from shared.terminal.command_line import JsonFlag, examples, group, parse_labels, print_json, print_table, put, say

PANEL = "Drones"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
TokenId = Annotated[str, typer.Argument(metavar="ID", help="The token's id, from `ls`.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    commands = group("token", "Hand out join tokens, with which drones register.")
    commands.command("add", epilog=examples("fleet token create --expires 1h --label gpu=yes"))(create)
    commands.command("ls", epilog=examples("fleet token ls"))(list_)
    commands.command("revoke", epilog=examples("fleet token revoke ID"))(revoke)
    app.add_typer(commands, rich_help_panel=PANEL)


def create(
    expires: Annotated[str, typer.Option("--expires", help="How long it can be used: 30m, 1h, 7d.")] = "1h",
    uses: Annotated[int, typer.Option("--uses", min=1, help="How many drones may join with it.")] = 1,
    label: Annotated[list[str] | None, typer.Option("--label", help="k=v fixed on those drones; repeats.")] = None,
    serves: Annotated[
        list[str] | None, typer.Option("--serves", help="An organization that those drones work for too; repeats.")
    ] = None,
    serves_all: Annotated[
        bool, typer.Option("--serves-all", help="Those drones work for every organization, also for later ones.")
    ] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Make a join token and print it alone."""
    token = client(org).create_join_token(
        expires_s=seconds(expires),
        uses=uses,
        labels=parse_labels(label or []),
        serves=["*"] if serves_all else serves or [],
    )
    if as_json:
        print_json(token)
    else:
        put(f"{token['token']}\n")


def list_(as_json: JsonFlag = False, org: Org = None) -> None:
    """List join tokens; the secrets themselves are not kept."""
    found = client(org).list_join_tokens()
    if as_json:
        print_json(found)
        return
    rows = [
        (
            token["id"],
            f"{token['used']}/{token['uses']}",
            labels(token["labels"]),
            ",".join("all" if name == "*" else name for name in token["serves"]) or "-",
            token["expires_at"],
            token["revoked_at"],
        )
        for token in found
    ]
    print_table(
        ("ID", "USED", "LABELS", "SERVES", "EXPIRES", "REVOKED"),
        rows,
        empty="no join tokens; fleet token create makes one",
    )


def revoke(token_id: TokenId, as_json: JsonFlag = False, org: Org = None) -> None:
    """Make a join token useless; drones that joined with it stay."""
    token = client(org).revoke_join_token(token_id)
    if as_json:
        print_json(token)
    else:
        say(f"join token {token_id} is revoked")


def seconds(text: str) -> int:
    """`90s`, `30m`, `1h`, `7d` as seconds. Raises Invalid for anything else."""
    match = re.fullmatch(r"(\d{1,6})([smhd])", text.strip())
    if not match or int(match[1]) == 0:
        raise Invalid(f"{text[:40]!r} is not a length of time", code="E-DURATION", next="--expires 1h")
    return int(match[1]) * _UNITS[match[2]]
