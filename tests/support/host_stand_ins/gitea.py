"""A stand-in for Gitea (and Forgejo).

Shapes: the "Gitea API" reference of its Swagger document, v1 (issue, repository, pull reviews, statuses, branches),
and "Webhooks" of its documentation.
"""

from __future__ import annotations

import hmac
import json
from hashlib import sha256
from typing import Any

from tests.support.host_stand_ins.server import (
    PEOPLE,
    REPOSITORY,
    Check,
    Delivery,
    Doc,
    HostStandIn,
    Note,
    Review,
    Thread,
    delivery_id,
    iso,
    page_of,
)


class GiteaStandIn(HostStandIn):
    kind = "gitea"
    api = f"/api/v1/repos/{REPOSITORY}"

    def public(self, path: str) -> Doc | None:
        return {"version": "1.24.0"} if path == "/api/v1/version" else None

    def answer(self, method: str, path: list[str], query: dict[str, str], said: Doc) -> tuple[int, Any]:
        match method, path:
            case "GET", ["pulls"]:
                rows = [self._pull(each) for each in self.pulls() if each.state == "open"]
                return 200, page_of(rows, query, "limit")
            case "POST", ["pulls"]:
                return 201, self._pull(self.open_pull(said["head"], said["base"], said["title"], said["body"]))
            case "PATCH", ["pulls", number]:
                thread = self.threads[f"pulls/{number}"]
                thread.title, thread.state = said.get("title", thread.title), said.get("state", thread.state)
                return 200, self._pull(thread)
            case "GET", ["pulls", number]:
                return 200, self._pull(self.threads[f"pulls/{number}"])
            case _:
                return self._rest(method, path, query, said)

    def _rest(self, method: str, path: list[str], query: dict[str, str], said: Doc) -> tuple[int, Any]:
        match method, path:
            case "GET", ["issues", "comments"]:
                rows = [each for each in self.notes if not each.path and iso(each.changed) >= query.get("since", "")]
                return 200, page_of([self._comment(each) for each in rows], query, "limit")
            case "GET", ["issues", number]:
                return 200, self._issue(self._thread(number))
            case "GET", ["branches", branch]:
                return 200, {"name": branch, "commit": {"id": self.tip(branch)}}
            case "GET", ["commits", head, "statuses"]:
                statuses = [self._status(each) for each in self.checks if each.head == head]
                return 200, page_of(statuses, query, "limit")
            case _:
                return self._comments(method, path, query, said)

    def _comments(self, method: str, path: list[str], query: dict[str, str], said: Doc) -> tuple[int, Any]:
        match method, path:
            case "GET", ["issues", number, "comments"]:
                rows = self.in_place(self._thread(number).place, on_lines=False)
                return 200, page_of([self._comment(each) for each in rows], query, "limit")
            case "POST", ["issues", number, "comments"]:
                return 201, self._comment(self.comment(self._thread(number).place, "kim", said["body"]))
            case "PATCH", ["issues", "comments", id]:
                note = self.note(id)
                if note is None:
                    return 404, {"message": "Not Found"}
                note.body = said["body"]
                return 200, self._comment(note)
            case "GET", ["pulls", number, "reviews"]:
                reviews = [each for each in self.reviews if each.place == f"pulls/{number}"]
                return 200, page_of([self._review(each) for each in reviews], query, "limit")
            case "POST", ["pulls", number, "reviews"]:
                lines = [(each["path"], each["new_position"], each["body"]) for each in said["comments"]]
                return 200, self._review(self.review(f"pulls/{number}", "kim", lines, said["body"]))
            case "GET", ["pulls", _, "reviews", id, "comments"]:
                return 200, [self._line_comment(each) for each in self.notes if str(each.review) == id]
        return 404, {"message": "Not Found"}

    def _thread(self, number: str) -> Thread:
        return self.threads.get(f"issues/{number}") or self.threads[f"pulls/{number}"]

    def _user(self, login: str) -> Doc:
        return {"login": login, "id": PEOPLE[login], "username": login}

    def _issue(self, thread: Thread) -> Doc:
        return {
            "number": thread.number,
            "title": thread.title,
            "body": thread.body,
            "state": thread.state,
            "user": self._user(thread.author),
            "pull_request": {"merged": thread.merged} if thread.place.startswith("pulls/") else None,
        }

    def _pull(self, thread: Thread) -> Doc:
        return {
            "number": thread.number,
            "html_url": self.url(f"{REPOSITORY}/pulls/{thread.number}"),
            "title": thread.title,
            "body": thread.body,
            "state": thread.state,
            "merged": thread.merged,
            "mergeable": thread.state == "open" and not self.has_conflicts(thread),
            "user": self._user(thread.author),
            "head": {"ref": thread.head, "sha": self.tip(thread.head)},
            "base": {"ref": thread.base, "sha": self.tip(thread.base)},
        }

    def _comment(self, note: Note) -> Doc:
        kind, _, number = note.place.partition("/")
        issue, pull = self.url(f"{REPOSITORY}/issues/{number}"), self.url(f"{REPOSITORY}/pulls/{number}")
        return {
            "id": note.id,
            "body": note.body,
            "user": self._user(note.author),
            "created_at": iso(note.at),
            "updated_at": iso(note.changed),
            "issue_url": "" if kind == "pulls" else issue,
            "pull_request_url": pull if kind == "pulls" else "",
            "html_url": f"{issue}#issuecomment-{note.id}",
        }

    def _line_comment(self, note: Note) -> Doc:
        return {
            "id": note.id,
            "body": note.body,
            "user": self._user(note.author),
            "resolver": None,
            "pull_request_review_id": note.review,
            "created_at": iso(note.at),
            "updated_at": iso(note.changed),
            "path": note.path,
            "commit_id": note.commit,
            "diff_hunk": "@@ -1,3 +1,3 @@\n def add(a, b):\n-    return a - b\n+    return a + b",
            "position": note.line,
            "original_position": 0,
        }

    def _review(self, review: Review) -> Doc:
        return {
            "id": review.id,
            "user": self._user(review.author),
            "body": review.body,
            "state": "COMMENT",
            "dismissed": False,
            "submitted_at": iso(review.at),
            "comments_count": sum(each.review == review.id for each in self.notes),
        }

    def _status(self, check: Check) -> Doc:
        return {
            "id": check.id,
            "context": check.name,
            "status": "failure",
            "description": check.log[-200:],
            "target_url": self.url(f"{REPOSITORY}/actions/runs/{check.id}/jobs/0"),
        }

    # --- webhooks -------------------------------------------------------------------------

    def delivery(self, what: str, about: Any) -> Delivery:
        event, payload = self._payload(what, about)
        headers = {"X-Gitea-Event": event, "X-Gitea-Delivery": delivery_id()}
        repository = {"id": 1, "full_name": REPOSITORY, "name": "calc"}
        return Delivery(headers, json.dumps({**payload, "repository": repository}).encode())

    def _payload(self, what: str, about: Any) -> tuple[str, Doc]:
        match what:
            case "comment":
                is_pull = about.place.startswith("pulls/")
                payload = {"action": "created", "comment": self._comment(about), "is_pull": is_pull}
                return "issue_comment", {**payload, "issue": self._issue(self.threads[about.place])}
            case "review":
                pull = self._pull(self.threads[about.place])
                review = {"type": "pull_request_review_comment", "content": about.body}
                return "pull_request_comment", {"action": "reviewed", "pull_request": pull, "review": review}
            case "check":
                return "status", {"context": about.name, "state": "failure", "sha": about.head}
            case "push":
                return "push", {"ref": f"refs/heads/{about}", "after": self.tip(about), "commits": []}
            case _:
                return "pull_request", {"action": "closed", "pull_request": self._pull(about)}

    def sign(self, secret: str, body: bytes) -> dict[str, str]:
        return {"X-Gitea-Signature": hmac.new(secret.encode(), body, sha256).hexdigest()}
