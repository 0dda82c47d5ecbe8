"""Where a form leads when it is done, and where it may lead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from control_plane.contract.declarations.operation import Operation

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


def local_page(address: str) -> str:
    """`address` if it is a page of ours, else the inbox: a log-in must not lead to another site."""
    harmless = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if harmless else "/"
