"""Requests of code hosts: whether they are signed, what happened, and by which id a repetition is known."""

from __future__ import annotations

import hmac
import json
import re
import secrets
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs

from standardwebhooks import Webhook, WebhookVerificationError

from control_plane.automation.task_templates import one_line
from control_plane.validation.checks import check_text
from shared.errors import Invalid

MAX_BODY = 1024 * 1024
WHSEC = "whsec_"
_FORM = "application/x-www-form-urlencoded"
_EVENT_HEADER = {"github": "x-github-event", "gitea": "x-gitea-event", "gitlab": "x-gitlab-event"}
_SECRET = re.compile(r"[!-~]{12,256}")
_NOTHING = re.compile("0{40,64}")


@dataclass(frozen=True)
class Hook:
    """What a signed request tells."""

    event: str
    """`issues.opened`, `push`; at GitLab `issue.open`."""
    payload: dict[str, Any]
    ids: tuple[str, ...]
    """Each of them is this delivery's alone."""


def is_signed(kind: str, secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether whoever sent this knows the secret. `headers` have names in lower case."""
    match kind:
        case "github":
            return _same(_hub_signature(secret, body), headers.get("x-hub-signature-256", ""))
        case "gitea":
            # A form is signed by what is in it, not by how it is written down.
            signed = {body, _form_payload(headers, body)}
            return any(_is_signed_by_gitea(secret, headers, each) for each in signed)
        case "gitlab":
            if "webhook-signature" in headers:
                return _is_standard(secret, headers, body)
            return _same(secret, headers.get("x-gitlab-token", ""))
        case _:
            return _is_standard(secret, headers, body)


def read_hook(kind: str, headers: Mapping[str, str], body: bytes) -> Hook:
    """What a signed request tells. Raises Invalid where it holds no JSON object."""
    payload = _payload(_form_payload(headers, body))
    return Hook(_event(kind, headers, payload), payload, _ids(kind, headers, body))


def why_ignored(hook: Hook, wanted: list[str]) -> str:
    """Why this event makes no task, '' if it does. A push by the fleet itself never does: tasks would make tasks."""
    kind = hook.event.partition(".")[0]
    if kind == "ping":
        return "a ping: the address and the secret are right"
    if wanted and hook.event not in wanted and kind not in wanted:
        return f"{hook.event or 'an event without a name'} is not one of this trigger's events: {', '.join(wanted)}"
    if kind == "push":
        ref = str(hook.payload.get("ref"))
        if ref.startswith(("refs/heads/fleet/", "refs/heads/fleet-late/")):
            return "the branch is one of the fleet's own"
        if _NOTHING.fullmatch(str(hook.payload.get("after"))):
            return "the branch was deleted"
    return ""


def new_hook_secret(kind: str) -> str:
    """A secret of 256 bits in the form that such a host takes."""
    if kind in {"github", "gitea"}:
        return secrets.token_hex(32)
    return WHSEC + b64encode(secrets.token_bytes(32)).decode()


def check_hook_secret(kind: str, secret: str) -> str:
    """A secret that somebody brings, as it is. Raises Invalid without repeating it."""
    if not _SECRET.fullmatch(secret):
        raise Invalid(
            "the secret is not possible",
            code="E-TRIGGER-SECRET",
            next="12 to 256 characters of ASCII without spaces; without one given, one is made",
        )
    return check_signing_secret(secret) if kind == "standard" else secret


def check_signing_secret(secret: str) -> str:
    """A secret of Standard Webhooks, as it is. Raises Invalid without repeating it."""
    key = secret.removeprefix(WHSEC)
    if secret == key or not re.fullmatch(r"[A-Za-z0-9+/]{32,88}={0,2}", key):
        raise Invalid(
            "the secret is none of Standard Webhooks",
            code="E-WEBHOOK-SECRET",
            next="whsec_ and 24 to 64 bytes in base64; without one given, one is made",
        )
    return secret


def check_events(events: list[str]) -> list[str]:
    """Names of events of a code host, each once. Raises Invalid."""
    if len(events) > 50:
        raise Invalid(f"there are {len(events)} events; 50 are allowed", code="E-TRIGGER-EVENT")
    for event in events:
        if not re.fullmatch(r"[A-Za-z0-9_.:-]{1,100}", event):
            check_text("the name of an event", event, limit=100)
            raise Invalid(f"{event[:80]!r} is no event", code="E-TRIGGER-EVENT", next="--event issues.opened")
    return list(dict.fromkeys(events))


# --- signatures ------------------------------------------------------------------------------------


def _hub_signature(secret: str, content: bytes) -> str:
    return f"sha256={_hmac(secret, content)}"


def _is_signed_by_gitea(secret: str, headers: Mapping[str, str], content: bytes) -> bool:
    own, hub = headers.get("x-gitea-signature", ""), headers.get("x-hub-signature-256", "")
    return _same(_hmac(secret, content), own) or _same(_hub_signature(secret, content), hub)


def _is_standard(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """By the library of Standard Webhooks, which also refuses what is older or newer than five minutes."""
    if not secret.startswith(WHSEC):
        return False
    try:
        Webhook(secret).verify(body, dict(headers), json_parse=False)
    # Beside its own error, what decoding makes of a signature, a secret or a body that is none.
    except (WebhookVerificationError, ValueError, RuntimeError):
        return False
    return True


def _hmac(secret: str, content: bytes) -> str:
    return hmac.new(secret.encode(), content, sha256).hexdigest()


def _same(expected: str, given: str) -> bool:
    """In a time that does not tell how much of it was right."""
    return hmac.compare_digest(expected.encode(), given.encode("utf-8", "replace"))


# --- what is in it -----------------------------------------------------------------------------------


def _form_payload(headers: Mapping[str, str], body: bytes) -> bytes:
    """The JSON in the body, also where it was sent as the field `payload` of a form."""
    if not headers.get("content-type", "").lower().startswith(_FORM):
        return body
    try:
        return parse_qs(body.decode(), max_num_fields=10).get("payload", [""])[0].encode()
    except ValueError:
        return b""


def _payload(text: bytes) -> dict[str, Any]:
    try:
        payload = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        raise Invalid(
            "the request holds no JSON object",
            code="E-HOOK-JSON",
            next="let the code host send application/json, or a form with the field payload",
        )
    return payload


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _event(kind: str, headers: Mapping[str, str], payload: dict[str, Any]) -> str:
    if kind == "standard":
        return one_line(payload.get("type"), 128)
    if kind == "gitlab":
        # GitLab's header has words for people: `Issue Hook`.
        about = payload.get("object_attributes")
        name, action = payload.get("object_kind"), about.get("action") if isinstance(about, dict) else None
    else:
        name, action = headers.get(_EVENT_HEADER[kind]), payload.get("action")
    return one_line(f"{name}.{action}" if name and isinstance(action, str) and action else name, 128)


def _ids(kind: str, headers: Mapping[str, str], body: bytes) -> tuple[str, ...]:
    """GitHub and Gitea sign the body and not the id beside it: there, the same body again is a repetition too."""
    if kind == "standard":
        return (_id(headers.get("webhook-id", "")),)
    if kind == "gitlab":
        given = headers.get("webhook-id" if "webhook-signature" in headers else "idempotency-key", "")
        # The id of an event is shared by those that it sets off in turn.
        event = headers.get("x-gitlab-event-uuid", "").encode("utf-8", "replace")
        return (_id(given) if given else _body_id(event + body),)
    given = headers.get("x-github-delivery" if kind == "github" else "x-gitea-delivery", "")
    return (_body_id(body), _id(given)) if given else (_body_id(body),)


def _id(given: str) -> str:
    fits = re.fullmatch(r"[!-~]{1,100}", given)
    return f"id:{given if fits else sha256(given.encode('utf-8', 'replace')).hexdigest()}"


def _body_id(body: bytes) -> str:
    return f"body:{sha256(body).hexdigest()}"
