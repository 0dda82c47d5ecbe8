"""Requests from code hosts: the event, and the ids that identify a repeated delivery."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from control_plane.automation.incoming_signatures import form_payload
from control_plane.automation.task_templates import one_line
from control_plane.contract.validation.checks import check_text
from shared.code_hosts import is_ours
from shared.errors import Invalid

_EVENT_HEADER = {"github": "x-github-event", "gitea": "x-gitea-event", "gitlab": "x-gitlab-event"}
FLEET_BRANCHES = ("fleet/", "fleet-late/")
_NOTHING = re.compile("0{40,64}")
_BRANCH_AT = (
    ("object_attributes", "ref"),
    ("check_suite", "head_branch"),
    ("check_run", "check_suite", "head_branch"),
    ("workflow_run", "head_branch"),
    ("workflow_job", "head_branch"),
    ("deployment", "ref"),
)
"""Where checks, pipelines and deployments name their branch."""
_BY_PUSHES = frozenset(
    {
        *(f"pull_request.{action}" for action in ("opened", "edited", "synchronize", "synchronized")),
        *(f"merge_request.{action}" for action in ("open", "update")),
    }
)
"""What happens to a pull request because its branch is pushed and the fleet opens it. The rest is done by others."""


@dataclass(frozen=True)
class CodeHostEvent:
    """An event of a code host, as a signed request reports it."""

    name: str
    """`issues.opened`, `push`; at GitLab `issue.open`."""
    payload: dict[str, Any]
    ids: tuple[str, ...]
    """Each is unique to this delivery."""


def read_event(kind: str, headers: Mapping[str, str], body: bytes) -> CodeHostEvent:
    """Read the event of a signed request. Raises Invalid if it contains no JSON object."""
    payload = _payload(form_payload(headers, body))
    return CodeHostEvent(_event(kind, headers, payload), payload, _ids(kind, headers, body))


def why_ignored(event: CodeHostEvent, wanted: list[str]) -> str:
    """Why this event creates no task, '' if it does.

    What happens because the fleet pushes its own branches never does, nor what it wrote at the host, or tasks would
    create tasks. A commit status of Gitea, and a job of a GitLab merge request, do not name their branch.
    """
    kind = event.name.partition(".")[0]
    if kind == "ping":
        return "ping: the URL and the secret are correct"
    if wanted and event.name not in wanted and kind not in wanted:
        return f"{event.name or 'an unnamed event'} is not one of this trigger's events: {', '.join(wanted)}"
    branches = branches_of(event)
    if branches and all(branch.startswith(FLEET_BRANCHES) for branch in branches):
        return "the branch belongs to the fleet"
    if is_ours(comment_in(event.payload)):
        return "the fleet wrote it"
    if kind == "push" and _NOTHING.fullmatch(str(event.payload.get("after"))):
        return "the branch was deleted"
    if kind == "delete" and event.payload.get("ref_type") == "branch":
        return "the branch was deleted"
    return ""


def check_events(events: list[str]) -> list[str]:
    """The event names without duplicates. Raises Invalid."""
    if len(events) > 50:
        raise Invalid(f"{len(events)} events given; 50 are allowed", code="E-TRIGGER-EVENT")
    for event in events:
        if not re.fullmatch(r"[A-Za-z0-9_.:-]{1,100}", event):
            check_text("the event name", event, limit=100)
            raise Invalid(f"invalid event name {event[:80]!r}", code="E-TRIGGER-EVENT", next="--event issues.opened")
    return list(dict.fromkeys(events))


def value_at(row: Mapping[str, Any], *keys: str) -> Any:
    """The value at this path of a payload; None if there is none."""
    value: Any = row
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def comment_in(payload: Mapping[str, Any]) -> str:
    """The text of the comment or review that an event reports; empty if there is none."""
    places = (("comment", "body"), ("review", "body"), ("review", "content"), ("object_attributes", "note"))
    found = (value_at(payload, *place) for place in places)
    return next((text for text in found if isinstance(text, str) and text), "")


def branches_of(event: CodeHostEvent, *, of_pulls: bool = False) -> list[str]:
    """The branches that the event reports about.

    Those of pull requests only if pushes cause such events, unless `of_pulls`. Some events do not name theirs.
    """
    payload = event.payload
    found = [value_at(payload, *path) for path in _BRANCH_AT]
    if payload.get("ref_type", "branch") == "branch":
        found.append(payload.get("ref"))
    if isinstance(named := payload.get("branches"), list):
        found += [value_at(each, "name") for each in named]
    if of_pulls or event.name in _BY_PUSHES:
        found += [
            value_at(payload, "pull_request", "head", "ref"),
            value_at(payload, "object_attributes", "source_branch"),
        ]
    return [branch.removeprefix("refs/heads/") for branch in found if isinstance(branch, str)]


def _payload(text: bytes) -> dict[str, Any]:
    try:
        payload = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        raise Invalid(
            "the request contains no JSON object",
            code="E-HOOK-JSON",
            next="configure the code host to send application/json, or a form with the field payload",
        )
    return payload


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _event(kind: str, headers: Mapping[str, str], payload: dict[str, Any]) -> str:
    if kind == "standard":
        return one_line(payload.get("type"), 128)
    if kind == "gitlab":
        # GitLab's header has a display name: `Issue Hook`.
        about = payload.get("object_attributes")
        name, action = payload.get("object_kind"), about.get("action") if isinstance(about, dict) else None
    else:
        name, action = headers.get(_EVENT_HEADER[kind]), payload.get("action")
    return one_line(f"{name}.{action}" if name and isinstance(action, str) and action else name, 128)


def _ids(kind: str, headers: Mapping[str, str], body: bytes) -> tuple[str, ...]:
    """The ids of a delivery. GitHub and Gitea sign the body but not the id, so a repeated body is a repetition too."""
    if kind == "standard":
        return (_id(headers.get("webhook-id", "")),)
    if kind == "gitlab":
        given = headers.get("webhook-id" if "webhook-signature" in headers else "idempotency-key", "")
        # Events that an event triggers share its id.
        event = headers.get("x-gitlab-event-uuid", "").encode("utf-8", "replace")
        return (_id(given) if given else _body_id(event + body),)
    given = headers.get("x-github-delivery" if kind == "github" else "x-gitea-delivery", "")
    return (_body_id(body), _id(given)) if given else (_body_id(body),)


def _id(given: str) -> str:
    fits = re.fullmatch(r"[!-~]{1,100}", given)
    return f"id:{given if fits else sha256(given.encode('utf-8', 'replace')).hexdigest()}"


def _body_id(body: bytes) -> str:
    return f"body:{sha256(body).hexdigest()}"
