"""Where an action leads when it is done, and what it shows once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from control_plane.core import Core
from control_plane.declarations.operation import Operation
from control_plane.declarations.tokens import JoinTokenDocument
from control_plane.web.local_page import local_page

PAGES: Mapping[str, str] = {
    "orders": "/orders",
    "graphs": "/orders",
    "races": "/orders",
    "batches": "/batches",
    "sessions": "/sessions",
    "tasks": "/tasks",
    "inbox": "/",
    "drones": "/fleet",
    "projects": "/projects",
    "memory": "/projects",
    "providers": "/models",
    "prices": "/models",
    "modes": "/projects",
    "budgets": "/cost",
    "schedules": "/automation",
    "triggers": "/automation",
    "code_hosts": "/automation",
    "webhooks": "/automation",
    "organizations": "/settings",
    "attention": "/settings/attention",
}
"""The page of each kind of thing, by the first part of its operations' paths."""
MAKES = frozenset({"create_session", "create_task", "fork_session", "submit"})
"""Operations that make a thing with a page of its own, to which their forms lead."""
SINGLE: Mapping[str, str] = {"orders": "order_id", "sessions": "session_id", "tasks": "task_id"}
"""Things with a page of their own, and the name that tells an operation which one it changes."""


def destination(operation: Operation, names: Mapping[str, str], answer: Any, wanted: str) -> str:
    """The address to continue at: the one that the form asked for, else the page of what was made or changed.

    Without an answer, what was made is not known: then it is the page with all of its kind.
    """
    if wanted:
        return local_page(wanted)
    parts = operation.path.strip("/").split("/")
    noun = "agents" if "agents" in parts else parts[0]
    if answer is not None and noun == "races":
        return f"/compare?race={answer.race.id}"
    if answer is not None and (operation.name in MAKES or noun == "batches"):
        return f"/{noun}/{answer.id}"
    if changed := names.get(SINGLE.get(noun, "")):
        return f"/{noun}/{changed}"
    return f"/{noun}" if noun == "agents" else PAGES.get(noun, "/settings")


# --- what is shown once, after something with a secret was created --------------------------------

_SECRETS = ("token", "secret")


def shows_once(answer: Any) -> bool:
    """Whether the answer contains a secret that is not shown again."""
    return any(isinstance(getattr(answer, each, None), str) for each in _SECRETS)


def created(core: Core, answer: Any) -> dict[str, Any]:
    """What to copy, in the order of its use, and for a join token the commands that use it."""
    parts = [(name, getattr(answer, name, None)) for name in ("url", *_SECRETS)]
    joins = answer if isinstance(answer, JoinTokenDocument) else None
    return {
        "parts": [(name, value) for name, value in parts if isinstance(value, str)],
        "commands": _join_commands(core, str(joins.token)) if joins else [],
        "join_token": joins,
    }


def _join_commands(core: Core, token: str) -> list[tuple[str, str]]:
    """What to run on the new machine, each with what it does."""
    return [
        ("Register the machine", f"DRONE_TOKEN={token} drone register --url {core.settings.url}"),
        ("Start it", "drone start"),
        ("Check it, if something is missing", "drone doctor"),
    ]
