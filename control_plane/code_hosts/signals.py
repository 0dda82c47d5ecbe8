"""Webhooks of the three hosts in one form: which repository, what kind of event, and whether it can concern the fleet.

Published payloads: GitHub "Webhook events and payloads", GitLab "Webhook events", Gitea "Webhooks".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from shared.code_hosts import is_ours

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
_OVER = frozenset({"deleted", "delete", "edited", "update"})
"""Actions on comments that start nothing."""


@dataclass(frozen=True)
class HostSignal:
    """One webhook, as far as it matters here: what happened is read from the host."""

    kind: SignalKind
    repository: str
    """`owner/name`; empty if the payload names none."""
    why_ignored: str = ""


def signal_of(kind: str, event: str, payload: Mapping[str, Any], mention: str) -> HostSignal:
    """Read a webhook; `event` is its name with the action, as triggers have it. Unknown shapes are ignored."""
    name, _, action = event.partition(".")
    match kind:
        case "github":
            found, repository, body = _GITHUB.get(name), _at(payload, "repository", "full_name"), _body(payload)
        case "gitea":
            found, repository, body = _GITEA.get(name), _at(payload, "repository", "full_name"), _body(payload)
            if isinstance(payload.get("review"), Mapping):
                found = "review"
        case _:
            found, repository = _GITLAB.get(name), _at(payload, "project", "path_with_namespace")
            body = _at(payload, "object_attributes", "note")
            if found == "comment" and _at(payload, "object_attributes", "type") == "DiffNote":
                found = "review"
    return HostSignal(found or "other", _text(repository), _why_ignored(found, name, action, body, mention))


def _why_ignored(kind: SignalKind | None, name: str, action: str, body: Any, mention: str) -> str:
    if name == "ping":
        return "ping: the address and the secret are correct"
    if kind is None:
        return f"{name or 'an unnamed event'} is of no concern here"
    if kind not in {"comment", "review"}:
        return ""
    if action in _OVER:
        return "edited and deleted comments start nothing"
    if is_ours(_text(body)):
        return "the fleet wrote it"
    if kind == "comment" and mention.lower() not in _text(body).lower():
        return f"it does not mention {mention}"
    return ""


def _body(payload: Mapping[str, Any]) -> Any:
    return _at(payload, "comment", "body") or _at(payload, "review", "body") or _at(payload, "review", "content")


def _at(row: Mapping[str, Any], *keys: str) -> Any:
    value: Any = row
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
