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
JSON, FORM = "application/json", "application/x-www-form-urlencoded"


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


def signature(secret: str, content: bytes) -> str:
    return hmac.new(secret.encode(), content, sha256).hexdigest()


def github(secret: str, event: str = "issues", payload: Doc | None = None) -> Request:
    """As GitHub's webhooks send it, with the content type `application/json`."""
    body = json.dumps(payload if payload is not None else github_issue()).encode()
    headers = {
        "content-type": JSON,
        "x-github-delivery": GUID,
        "x-github-event": event,
        "x-hub-signature": "sha1=7d38cdd689735b008b3c702edd92eea23791c5f6",
        "x-hub-signature-256": f"sha256={signature(secret, body)}",
    }
    return Request(headers, body)


def github_form(secret: str) -> Request:
    """The same with the content type of a form: the form's bytes are signed."""
    request = github(secret)
    body = urlencode({"payload": request.body.decode()}).encode()
    return replace(request.named(content_type=FORM, x_hub_signature_256=f"sha256={signature(secret, body)}"), body=body)


def gitea(secret: str, event: str = "issues", payload: Doc | None = None) -> Request:
    """As Gitea and Forgejo send it; they also send the headers of GitHub and Gogs."""
    body = json.dumps(payload if payload is not None else gitea_issue(), indent=2).encode()
    signed, ids = signature(secret, body), "f6266f16-1bf3-46a5-9ea4-602e06ead473"
    headers = {
        **{"content-type": JSON, "x-gitea-delivery": ids, "x-gitea-event": event, "x-gitea-signature": signed},
        **{"x-gogs-event": event, "x-gogs-signature": signed, "x-github-delivery": ids, "x-github-event": event},
        "x-hub-signature-256": f"sha256={signed}",
    }
    return Request(headers, body)


def gitea_form(secret: str) -> Request:
    """The same as a form: Gitea signs the payload in the form, not the form."""
    request = gitea(secret)
    return Request({**request.headers, "content-type": FORM}, urlencode({"payload": request.body.decode()}).encode())


def gitlab(token: str, payload: Doc | None = None, event: str = "Issue Hook", key: str = GUID) -> Request:
    """As GitLab 17.4 and later send it, with a secret token."""
    headers = {
        "content-type": JSON,
        "idempotency-key": key,
        "x-gitlab-event": event,
        "x-gitlab-event-uuid": "1697b63f-d1eb-4c59-b2c1-e65b12e635c0",
        "x-gitlab-token": token,
    }
    return Request(headers, json.dumps(payload if payload is not None else gitlab_issue()).encode())


def gitlab_signed(secret: str) -> Request:
    """As GitLab sends it with a signing token."""
    request = gitlab("").named(x_gitlab_token=None)
    signed = standard(secret, json.loads(request.body), request.headers["idempotency-key"])
    return Request({**request.headers, **signed.headers}, signed.body)


def standard(secret: str, payload: Doc, message: str = "msg_1", at: datetime | None = None) -> Request:
    """As a sender that follows Standard Webhooks sends it."""
    at, body = at or datetime.now(UTC), json.dumps(payload)
    headers = {
        "content-type": JSON,
        "webhook-id": message,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign(message, at, body),
    }
    return Request(headers, body.encode())


REPOSITORY = {"id": 186853002, "name": "shop", "full_name": "octo/shop"}
WORDS = {"title": "Prices lack a currency", "body": "See the cart.", "state": "open"}


def github_issue(action: str = "opened", **words: str) -> Doc:
    urls = {
        "url": "https://api.github.com/repos/octo/shop/issues/7",
        "html_url": "https://github.com/octo/shop/issues/7",
    }
    issue = {"number": 7, "user": {"login": "octocat"}, "labels": [{"name": "bug"}], **urls, **WORDS, **words}
    return {"action": action, "issue": issue, "repository": REPOSITORY, "sender": {"login": "octocat"}}


def gitea_issue() -> Doc:
    urls = {
        "url": "https://git.example.org/api/v1/repos/octo/shop/issues/3",
        "html_url": "https://git.example.org/octo/shop/issues/3",
    }
    issue = {"number": 3, "user": {"login": "octo"}, "labels": [], **urls, **WORDS}
    return {"action": "opened", "number": 3, "issue": issue, "repository": REPOSITORY, "sender": {"login": "octo"}}


def gitlab_issue() -> Doc:
    url = "https://gitlab.example.com/octo/shop/-/issues/23"
    words = {"title": "Prices lack a currency", "description": "See the cart.", "state": "opened"}
    return {
        "object_kind": "issue",
        "user": {"id": 1, "name": "Administrator", "username": "root"},
        "project": {"id": 1, "name": "Shop", "path_with_namespace": "octo/shop"},
        "object_attributes": {"id": 301, "iid": 23, "action": "open", "url": url, **words},
        "labels": [],
    }


def push(ref: str = "refs/heads/main", after: str = SHA) -> Doc:
    """A push of one commit, in the form of GitHub and Gitea."""
    commit = {
        "id": SHA,
        "message": "Round prices\n\nHalf a cent goes up.",
        "url": f"https://host/octo/shop/commit/{SHA}",
    }
    compare = f"https://host/octo/shop/compare/{SHA}"
    whose = {"repository": REPOSITORY, "sender": {"login": "octocat"}, "pusher": {"name": "octocat"}}
    return {"ref": ref, "after": after, "compare": compare, "compare_url": compare, "commits": [commit], **whose}


def gitlab_push() -> Doc:
    commit = {"id": SHA, "message": "Round prices\n", "title": "Round prices", "author": {"name": "Octo Cat"}}
    return {
        "object_kind": "push",
        "after": SHA,
        "ref": "refs/heads/main",
        "user_name": "Octo Cat",
        "user_username": "octo",
        "project": {"id": 15, "name": "Shop", "path_with_namespace": "octo/shop"},
        "commits": [commit],
        "total_commits_count": 1,
    }
