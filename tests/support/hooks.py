"""Requests as code hosts send them: headers, shortened payloads and signatures."""

from __future__ import annotations

import hmac
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

from standardwebhooks import Webhook

Doc = dict[str, Any]
GUID = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
SHA = "f95f852bd8fca8fcc58a9a2d6c842781e32a215e"


@dataclass(frozen=True)
class Request:
    """One request."""

    headers: dict[str, str]
    body: bytes

    def named(self, **headers: str | None) -> Request:
        """The same request with other headers; None removes a header."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        kept = {name: value for name, value in {**self.headers, **given}.items() if value is not None}
        return replace(self, headers=kept)


def github(secret: str, event: str = "issues", payload: Doc | None = None, guid: str = GUID) -> Request:
    """As GitHub's webhooks send it, with the content type `application/json`."""
    body = json.dumps(payload if payload is not None else github_issue()).encode()
    headers = {
        "content-type": "application/json",
        "user-agent": "GitHub-Hookshot/044aadd",
        "x-github-delivery": guid,
        "x-github-event": event,
        "x-github-hook-id": "292430182",
        "x-github-hook-installation-target-type": "repository",
        "x-hub-signature": "sha1=7d38cdd689735b008b3c702edd92eea23791c5f6",
        "x-hub-signature-256": f"sha256={signature(secret, body)}",
    }
    return Request(headers, body)


def github_form(secret: str, payload: Doc | None = None) -> Request:
    """The same with the content type of a form: the form's bytes are signed."""
    request = github(secret, payload=payload)
    body = urlencode({"payload": request.body.decode()}).encode()
    return replace(request.named(content_type=FORM, x_hub_signature_256=f"sha256={signature(secret, body)}"), body=body)


def gitea(secret: str, event: str = "issues", payload: Doc | None = None) -> Request:
    """As Gitea and Forgejo send it; they also send the headers of GitHub and Gogs."""
    body = json.dumps(payload if payload is not None else gitea_issue(), indent=2).encode()
    signed = signature(secret, body)
    headers = {
        "content-type": "application/json",
        "x-gitea-delivery": "f6266f16-1bf3-46a5-9ea4-602e06ead473",
        "x-gitea-event": event,
        "x-gitea-event-type": event,
        "x-gitea-signature": signed,
        "x-gogs-event": event,
        "x-gogs-signature": signed,
        "x-hub-signature-256": f"sha256={signed}",
        "x-github-delivery": "f6266f16-1bf3-46a5-9ea4-602e06ead473",
        "x-github-event": event,
    }
    return Request(headers, body)


def gitea_form(secret: str) -> Request:
    """The same as a form: Gitea signs the payload in the form, not the form."""
    request = gitea(secret)
    return Request({**request.headers, "content-type": FORM}, urlencode({"payload": request.body.decode()}).encode())


def gitlab(token: str, payload: Doc | None = None, event: str = "Issue Hook", key: str = GUID) -> Request:
    """As GitLab 17.4 and later send it, with a secret token."""
    headers = {
        "content-type": "application/json",
        "user-agent": "GitLab/17.5.1",
        "idempotency-key": key,
        "x-gitlab-event": event,
        "x-gitlab-webhook-uuid": "d96cd136-d798-4abc-b542-07c41d1d9333",
        "x-gitlab-instance": "https://gitlab.example.com",
        "x-gitlab-event-uuid": "1697b63f-d1eb-4c59-b2c1-e65b12e635c0",
        "x-gitlab-token": token,
    }
    return Request(headers, json.dumps(payload if payload is not None else gitlab_issue()).encode())


def gitlab_signed(secret: str, payload: Doc | None = None) -> Request:
    """As GitLab sends it with a signing token."""
    request = gitlab("", payload).named(x_gitlab_token=None)
    signed = standard(secret, json.loads(request.body), request.headers["idempotency-key"])
    return Request({**request.headers, **signed.headers}, signed.body)


def standard(secret: str, payload: Doc, message: str = "msg_1", at: datetime | None = None) -> Request:
    """As a sender that follows Standard Webhooks sends it."""
    at, body = at or datetime.now(UTC), json.dumps(payload)
    headers = {
        "content-type": "application/json",
        "webhook-id": message,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign(message, at, body),
    }
    return Request(headers, body.encode())


def signature(secret: str, content: bytes) -> str:
    return hmac.new(secret.encode(), content, sha256).hexdigest()


FORM = "application/x-www-form-urlencoded"


# --- payloads ------------------------------------------------------------------------------------


def github_issue(
    action: str = "opened", title: str = "Prices lack a currency", body: str | None = "See the cart."
) -> Doc:
    return {
        "action": action,
        "issue": {
            "url": "https://api.github.com/repos/octo/shop/issues/7",
            "html_url": "https://github.com/octo/shop/issues/7",
            "id": 444500041,
            "number": 7,
            "title": title,
            "user": {"login": "octocat", "id": 21031067, "type": "User"},
            "labels": [{"id": 1362934389, "name": "bug", "color": "d73a4a", "default": True}],
            "state": "open",
            "created_at": "2026-11-21T11:00:00Z",
            "body": body,
        },
        "repository": {"id": 186853002, "name": "shop", "full_name": "octo/shop", "private": False},
        "sender": {"login": "octocat", "id": 21031067, "type": "User"},
    }


def github_push(ref: str = "refs/heads/main", after: str = SHA) -> Doc:
    return {
        "ref": ref,
        "before": "6113728f27ae82c7b1a177c8d03f9e96e0adf246",
        "after": after,
        "repository": {"id": 186853002, "name": "shop", "full_name": "octo/shop"},
        "pusher": {"name": "octocat", "email": "octocat@example.org"},
        "sender": {"login": "octocat"},
        "created": False,
        "deleted": False,
        "forced": False,
        "compare": "https://github.com/octo/shop/compare/6113728f27ae...f95f852bd8fc",
        "commits": [
            {
                "id": SHA,
                "message": "Round prices\n\nHalf a cent goes up.",
                "timestamp": "2026-11-21T12:00:00+01:00",
                "url": f"https://github.com/octo/shop/commit/{SHA}",
                "author": {"name": "Octo Cat", "email": "octocat@example.org", "username": "octocat"},
                "added": [],
                "removed": [],
                "modified": ["prices.py"],
            }
        ],
        "head_commit": {"id": SHA},
    }


def gitea_issue() -> Doc:
    return {
        "action": "opened",
        "number": 3,
        "issue": {
            "id": 41,
            "url": "https://git.example.org/api/v1/repos/octo/shop/issues/3",
            "html_url": "https://git.example.org/octo/shop/issues/3",
            "number": 3,
            "user": {"id": 1, "login": "octo", "username": "octo"},
            "title": "Prices lack a currency",
            "body": "See the cart.",
            "labels": [],
            "state": "open",
        },
        "repository": {"id": 2, "name": "shop", "full_name": "octo/shop", "owner": {"login": "octo"}},
        "sender": {"id": 1, "login": "octo", "username": "octo"},
    }


def gitea_push() -> Doc:
    return {
        "ref": "refs/heads/main",
        "before": "28e1879d029cb852e4844d9c718537df08844e03",
        "after": SHA,
        "compare_url": "https://git.example.org/octo/shop/compare/28e1879d...f95f852b",
        "commits": [{"id": SHA, "message": "Round prices\n", "url": "https://git.example.org/octo/shop/commit/f95"}],
        "repository": {"id": 2, "name": "shop", "full_name": "octo/shop", "owner": {"login": "octo"}},
        "pusher": {"id": 1, "login": "octo", "username": "octo"},
        "sender": {"id": 1, "login": "octo", "username": "octo"},
    }


def gitlab_issue() -> Doc:
    return {
        "object_kind": "issue",
        "event_type": "issue",
        "user": {"id": 1, "name": "Administrator", "username": "root"},
        "project": {"id": 1, "name": "Shop", "path_with_namespace": "octo/shop", "default_branch": "main"},
        "object_attributes": {
            "id": 301,
            "iid": 23,
            "title": "Prices lack a currency",
            "description": "See the cart.",
            "state": "opened",
            "action": "open",
            "url": "https://gitlab.example.com/octo/shop/-/issues/23",
        },
        "labels": [],
        "changes": {},
    }


def gitlab_push() -> Doc:
    return {
        "object_kind": "push",
        "event_name": "push",
        "before": "95790bf891e76fee5e1747ab589903a6a1f80f22",
        "after": SHA,
        "ref": "refs/heads/main",
        "checkout_sha": SHA,
        "user_id": 4,
        "user_name": "Octo Cat",
        "user_username": "octo",
        "project_id": 15,
        "project": {"id": 15, "name": "Shop", "path_with_namespace": "octo/shop"},
        "commits": [{"id": SHA, "message": "Round prices\n", "title": "Round prices", "author": {"name": "Octo Cat"}}],
        "total_commits_count": 1,
    }
