"""Join tokens and API tokens as tables for people."""

from __future__ import annotations

from typing import Any

from control_plane.cli.drone_text import labels
from shared.terminal.command_line import print_table

Doc = dict[str, Any]


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
