"""A stand-in for Gitea (and Forgejo), which is like GitHub where this file does not say otherwise.

Shapes: the "Gitea API" reference of its Swagger document, v1 (issue, repository, pull reviews, statuses, branches),
and "Webhooks" of its documentation.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Any

from tests.support.host_stand_ins.github import GitHubStandIn
from tests.support.host_stand_ins.server import PEOPLE, REPOSITORY, Check, Doc, Note, Review, Thread, iso, page_of


class GiteaStandIn(GitHubStandIn):
    kind = "gitea"
    api = f"/api/v1/repos/{REPOSITORY}"
    size = "limit"
    header = "X-Gitea"
    checks_conflicts = False
    """It has not yet found out whether pull requests can be merged."""

    def public(self, path: str) -> Doc | None:
        return {"version": "1.24.0"} if path == "/api/v1/version" else None

    def answer(self, method: str, path: list[str], query: dict[str, str], said: Doc) -> tuple[int, Any]:
        match method, path:
            case "GET", ["pulls"]:
                return 200, page_of([self._pull(each) for each in self.pulls() if each.state == "open"], query, "limit")
            case "GET", ["branches", branch]:
                return 200, {"name": branch, "commit": {"id": self.tip(branch)}}
            case "GET", ["commits", head, "statuses"]:
                return 200, page_of([self._check(each) for each in self.checks if each.head == head], query, "limit")
            case "POST", ["pulls", number, "reviews"]:
                lines = [(each["path"], each["new_position"], each["body"]) for each in said["comments"]]
                return 200, self._review(self.review(f"pulls/{number}", "kim", lines, said["body"]))
            case "GET", ["pulls", _, "reviews", id, "comments"]:
                return 200, [self._line_comment(each) for each in self.notes if str(each.review) == id]
            case ("PATCH", ["pulls", "comments", _]) | (_, ["pulls", _, "comments", *_]):
                return 404, {"message": "Not Found"}
            case _:
                return super().answer(method, path, query, said)

    def _user(self, login: str) -> Doc:
        return {"login": login, "id": PEOPLE[login], "username": login}

    def _issue(self, thread: Thread) -> Doc:
        pull = {"merged": thread.merged} if thread.place.startswith("pulls/") else None
        return {**super()._issue(thread), "pull_request": pull}

    def _pull(self, thread: Thread) -> Doc:
        is_draft = thread.title.startswith(("WIP:", "[WIP]"))
        unclear = thread.state != "open" or is_draft or self.checks_conflicts
        mergeable = not unclear and not self.has_conflicts(thread)
        address = self.url(f"{REPOSITORY}/pulls/{thread.number}")
        return {**super()._pull(thread), "html_url": address, "mergeable": mergeable}

    def _comment(self, note: Note) -> Doc:
        kind, _, number = note.place.partition("/")
        issue, pull = self.url(f"{REPOSITORY}/issues/{number}"), self.url(f"{REPOSITORY}/pulls/{number}")
        return {
            **super()._comment(note),
            "issue_url": "" if kind == "pulls" else issue,
            "pull_request_url": pull if kind == "pulls" else "",
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
        counted = sum(each.review == review.id for each in self.notes)
        return {**super()._review(review), "state": "COMMENT", "dismissed": False, "comments_count": counted}

    def _check(self, check: Check) -> Doc:
        return {
            "id": check.id,
            "context": check.name,
            "status": "failure",
            "description": check.log[-200:],
            "target_url": self.url(f"{REPOSITORY}/actions/runs/{check.id}/jobs/0"),
        }

    # --- webhooks -------------------------------------------------------------------------

    def payload(self, what: str, about: Any) -> tuple[str, Doc]:
        match what:
            case "comment":
                event, payload = super().payload(what, about)
                return event, {**payload, "is_pull": about.place.startswith("pulls/")}
            case "review":
                pull = self._pull(self.threads[about.place])
                review = {"type": "pull_request_review_comment", "content": about.body}
                return "pull_request_comment", {"action": "reviewed", "pull_request": pull, "review": review}
            case "check":
                return "status", {"context": about.name, "state": "failure", "sha": about.head}
            case _:
                return super().payload(what, about)

    def sign(self, secret: str, body: bytes) -> dict[str, str]:
        return {"X-Gitea-Signature": hmac.new(secret.encode(), body, sha256).hexdigest()}
