"""A webhook of a connected code host: its signature is checked, and the host is read soon."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from sqlalchemy import or_, select, update

from control_plane.automation.code_host_events import (
    FLEET_BRANCHES,
    CodeHostEvent,
    branches_of,
    comment_in,
    read_event,
    value_at,
)
from control_plane.automation.incoming_signatures import is_signed
from control_plane.contract.declarations.code_hosts import CodeHostAnswer
from control_plane.core import Core
from control_plane.db.code_hosts import HostLink
from control_plane.db.projects import Project
from control_plane.operations.code_hosts.syncing import MOST_PULLS, pulls_to_read
from shared.code_hosts import is_ours
from shared.errors import NotFound, Unauthenticated

FOR_EACH_PULL = timedelta(seconds=6)
"""Least time between readings after checks and pushes, for each open pull request: each takes four requests, and GitHub
allows 5,000 an hour."""
FOR_EACH_CLOSED = FOR_EACH_PULL / 4
"""The same for each closed one that is read: it takes one request."""


def accept_webhook(core: Core, link_id: str, headers: Mapping[str, str], body: bytes) -> CodeHostAnswer:
    """Note that something happened at the host; names in `headers` are in lower case.

    The payload starts nothing itself: a copy, a late or a forged one is at most a reason to look. Raises
    Unauthenticated, with the same message for a wrong signature and an unknown connection, Invalid for a body that is
    no JSON object, NotFound for another repository.
    """
    row = _signed(core, link_id, headers, body)
    event = read_event(row.kind, headers, body)
    base = _base_of(core, row)
    signal = signal_of(row.kind, event.name, event.payload, row.mention, base)
    if not row.enabled:
        return CodeHostAnswer(outcome="ignored", why="this connection is disabled")
    if signal.repository and signal.repository.lower() != row.repository.lower():
        raise NotFound(
            "this connection belongs to another repository",
            code="E-HOOK-REPOSITORY",
            next="fleet hosts add    connects this repository, and prints an address of its own",
        )
    if signal.why_ignored:
        return CodeHostAnswer(outcome="ignored", why=signal.why_ignored)
    at = core.clock.now()
    if signal.kind in _OF_BRANCHES and row.last_at is not None:
        at = max(at, row.last_at + _spacing(core, row))
    with core.database.write() as db:
        # The first of several sets the time: the others are read with it.
        first = HostLink.id == row.id, or_(HostLink.news_at.is_(None), HostLink.news_at > at)
        db.execute(update(HostLink).where(*first).values(news_at=at))
    core.broker.wake()
    return CodeHostAnswer(outcome="noted", why=f"{event.name or 'the event'}: the code host is read now")


def _base_of(core: Core, row: HostLink) -> str | None:
    """The branch that pull requests are merged into, if the project names one."""
    with core.database.read() as db:
        return db.get_one(Project, row.project_id).branch


def _spacing(core: Core, row: HostLink) -> timedelta:
    """How long after the last reading checks and pushes may cause the next one."""
    with core.database.read() as db:
        still_open, closed = pulls_to_read(db, row, core.clock.now())
    for_each = [FOR_EACH_PULL] * len(still_open) + [FOR_EACH_CLOSED] * len(closed)
    return sum(for_each[:MOST_PULLS], timedelta())


def _signed(core: Core, link_id: str, headers: Mapping[str, str], body: bytes) -> HostLink:
    with core.database.read() as db:
        row = db.scalar(select(HostLink).where(HostLink.id == link_id, HostLink.removed_at.is_(None)))
    # For an unknown connection, the same work is done with a random secret.
    secret = core.vault.open_at_rest(row.sealed_secret, "host_links.sealed_secret") if row else secrets.token_hex(32)
    if not is_signed(row.kind if row else "github", secret, headers, body) or row is None:
        raise Unauthenticated(
            "unknown connection, or the request is not signed with its secret",
            code="E-HOOK-SIGNATURE",
            next="give the code host the secret that fleet hosts add printed, or set a new one: fleet hosts edit",
        )
    return row


# --- webhooks of the three hosts in one form ------------------------------------------------------
#
# Published payloads: GitHub "Webhook events and payloads", GitLab "Webhook events", Gitea "Webhooks".

SignalKind = Literal["comment", "review", "check", "push", "pull", "other"]
_GITHUB: Mapping[str, SignalKind] = {
    "issue_comment": "comment",
    "pull_request_review": "review",
    "pull_request_review_comment": "review",
    "check_run": "check",
    "check_suite": "check",
    "workflow_run": "check",
    "status": "check",
    "push": "push",
    "pull_request": "pull",
}
_GITEA: Mapping[str, SignalKind] = {
    **_GITHUB,
    "pull_request_comment": "comment",
    "pull_request_review_approved": "review",
    "pull_request_review_rejected": "review",
    "pull_request_review_comment": "review",
    "pull_request_approved": "review",
    "pull_request_rejected": "review",
    "workflow_job": "check",
}
_GITLAB: Mapping[str, SignalKind] = {
    "note": "comment",
    "pipeline": "check",
    "build": "check",
    "push": "push",
    "merge_request": "pull",
}
_OF_BRANCHES = frozenset({"check", "push", "pull"})
_OVER = frozenset({"deleted", "delete", "edited", "update"})
"""Actions on comments that start nothing."""


@dataclass(frozen=True)
class HostSignal:
    """One webhook, as far as it matters here: what happened is read from the host."""

    kind: SignalKind
    repository: str
    """`owner/name`; empty if the payload names none."""
    why_ignored: str = ""


def signal_of(kind: str, event: str, payload: Mapping[str, Any], mention: str, base: str | None = None) -> HostSignal:
    """Read a webhook; `event` is its name with the action, as triggers have it. Unknown shapes are ignored.

    `base` is the branch that the fleet's pull requests are merged into; None: the repository's default branch.
    """
    name, _, action = event.partition(".")
    match kind:
        case "github":
            found, repository = _GITHUB.get(name), value_at(payload, "repository", "full_name")
        case "gitea":
            found, repository = _GITEA.get(name), value_at(payload, "repository", "full_name")
            if isinstance(payload.get("review"), Mapping):
                found = "review"
        case _:
            found, repository = _GITLAB.get(name), value_at(payload, "project", "path_with_namespace")
            if found == "comment" and value_at(payload, "object_attributes", "type") == "DiffNote":
                found = "review"
    ignored = _why_ignored(found, name, action, comment_in(payload), mention)
    if found in _OF_BRANCHES:
        ignored = _elsewhere(found, CodeHostEvent(event, dict(payload), ()), base)
    return HostSignal(found or "other", _text(repository), ignored)


def _elsewhere(kind: SignalKind, event: CodeHostEvent, base: str | None) -> str:
    """Why what happened to branches is of no concern: each reading costs requests, and hosts allow few."""
    branches = branches_of(event, of_pulls=True)
    counting: tuple[str, ...] = (*FLEET_BRANCHES, "refs/merge-requests/")
    if kind == "push":
        named = (value_at(event.payload, owner, "default_branch") for owner in ("repository", "project"))
        merged_into = base or next(filter(None, named), None)
        if merged_into is None or merged_into in branches:
            return ""
    if not branches or any(branch.startswith(counting) for branch in branches):
        return ""
    return f"{branches[0][:100]} is not a branch of the fleet"


def _why_ignored(kind: SignalKind | None, name: str, action: str, body: str, mention: str) -> str:
    if name == "ping":
        return "ping: the address and the secret are correct"
    if kind is None:
        return f"{name or 'an unnamed event'} is of no concern here"
    if kind not in {"comment", "review"}:
        return ""
    if action in _OVER:
        return "edited and deleted comments start nothing"
    if is_ours(body):
        return "the fleet wrote it"
    if kind == "comment" and mention.lower() not in body.lower():
        return f"it does not mention {mention}"
    return ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
