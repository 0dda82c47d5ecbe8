"""What is shown once, after something with a secret was created."""

from __future__ import annotations

from typing import Any

from control_plane.core import Core
from control_plane.declarations.tokens import JoinTokenDocument

SECRETS = ("token", "secret")


def shows_once(answer: Any) -> bool:
    """Whether the answer contains a secret that is not shown again."""
    return any(isinstance(getattr(answer, each, None), str) for each in SECRETS)


def created(core: Core, answer: Any) -> dict[str, Any]:
    """What to copy, in the order of its use, and for a join token the commands that use it."""
    parts = [(name, getattr(answer, name, None)) for name in ("url", *SECRETS)]
    joins = answer if isinstance(answer, JoinTokenDocument) else None
    return {
        "parts": [(name, value) for name, value in parts if isinstance(value, str)],
        "commands": join_commands(core, str(joins.token)) if joins else [],
        "join_token": joins,
    }


def join_commands(core: Core, token: str) -> list[tuple[str, str]]:
    """What to run on the new machine, each with what it does."""
    return [
        ("Register the machine", f"DRONE_TOKEN={token} drone register --url {core.settings.url}"),
        ("Start it", "drone start"),
        ("Check it, if something is missing", "drone doctor"),
    ]
