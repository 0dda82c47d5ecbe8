"""A stand-in for GitHub.

Shapes: "GitHub REST API documentation", version 2022-11-28 (issues/comments, pulls, pulls/comments, pulls/reviews,
checks/runs, actions/workflow-jobs, branches), "GraphQL API" (nodes), and "Webhook events and payloads".
"""

from __future__ import annotations

import hmac
import json
from datetime import timedelta
from hashlib import sha256
from typing import Any

from tests.support.host_stand_ins.server import (
    DELETED,
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

GRAPHQL = "/api/graphql"
DRAFTED = timedelta(seconds=90)
"""How long before its review is submitted a comment on a line is written."""
MOST_NODES = 100


class GitHubStandIn(HostStandIn):
    kind = "github"
    api = f"/api/v3/repos/{REPOSITORY}"
    size = "per_page"
    """The parameter for the length of a page."""
    header = "X-GitHub"

    def public(self, path: str) -> Doc | None:
        return {"verifiable_password_authentication": False} if path == "/api/v3/meta" else None

    def answers(self, path: str) -> bool:
        return super().answers(path) or path == GRAPHQL

    def answer(self, method: str, path: list[str], query: dict[str, str], said: Doc) -> tuple[int, Any]:
        match method, path:
            case "POST", ["", "api", "graphql"]:
                ids = said["variables"]["ids"][:MOST_NODES]
                return 200, {"data": {"nodes": [self._node(self.note(id.removeprefix("PRRC_"))) for id in ids]}}
            case "GET", ["pulls"]:
                branch = query.get("head", "").partition(":")[2]
                return 200, [self._pull(each) for each in self.pulls() if each.head == branch and each.state == "open"]
            case "POST", ["pulls"]:
                return 201, self._pull(self.open_pull(said["head"], said["base"], said["title"], said["body"]))
            case "PATCH", ["pulls", number]:
                thread = self.threads[f"pulls/{number}"]
                thread.title, thread.state = said.get("title", thread.title), said.get("state", thread.state)
                return 200, self._pull(thread)
            case "GET", ["pulls", number] if f"pulls/{number}" in self.threads:
                return 200, self._pull(self.threads[f"pulls/{number}"])
            case _:
                return self._rest(method, path, query, said)

    def _rest(self, method: str, path: list[str], query: dict[str, str], said: Doc) -> tuple[int, Any]:
        match method, path:
            case "GET", ["issues", "comments"]:
                rows = sorted((each for each in self.notes if not each.path), key=lambda each: each.changed)
                since = query.get("since", "")
                return 200, page_of(
                    [self._comment(each) for each in rows if iso(each.changed) >= since], query, self.size
                )
            case "GET", ["issues", number]:
                return 200, self._issue(self._thread(number))
            case "GET", ["branches", branch]:
                return 200, {"name": branch, "commit": {"sha": self.tip(branch)}}
            case "GET", ["commits", head, "check-runs"]:
                runs = [self._check(each) for each in self.checks if each.head == head]
                return 200, {"total_count": len(runs), "check_runs": runs}
            case "GET", ["actions", "jobs", job, "logs"]:
                return 200, next(each.log for each in self.checks if str(each.id) == job)
            case _:
                return self._comments(method, path, query, said)

    def _comments(self, method: str, path: list[str], query: dict[str, str], said: Doc) -> tuple[int, Any]:
        match method, path:
            case "GET", ["issues", number, "comments"]:
                rows = self.in_place(self._thread(number).place, on_lines=False)
                return 200, page_of([self._comment(each) for each in rows], query, self.size)
            case "POST", ["issues", number, "comments"]:
                return 201, self._comment(self.comment(self._thread(number).place, "kim", said["body"]))
            case "PATCH", ["issues" | "pulls", "comments", id]:
                note = self.note(id)
                if note is None:
                    return 404, {"message": "Not Found"}
                note.body = said["body"]
                return 200, self._comment(note)
            case "GET", ["pulls", number, "comments"]:
                rows = self.in_place(f"pulls/{number}", on_lines=True)
                rows = rows[::-1] if query.get("direction") == "desc" else rows
                return 200, page_of([self._line_comment(each) for each in rows], query, self.size)
            case "POST", ["pulls", number, "comments", id, "replies"]:
                return 201, self._line_comment(self._reply(f"pulls/{number}", int(id), said["body"]))
            case "GET", ["pulls", number, "reviews"]:
                reviews = [each for each in self.reviews if each.place == f"pulls/{number}"]
                return 200, page_of([self._review(each) for each in reviews], query, self.size)
        return 404, {"message": "Not Found"}

    def _reply(self, place: str, to: int, body: str) -> Note:
        first = self.note(to)
        assert first is not None
        review = Review(next(self.ids), place, "kim", "")
        self.reviews.append(review)
        note = Note(next(self.ids), place, "kim", body, review=review.id, path=first.path, line=first.line)
        note.reply_to, note.commit = to, first.commit
        self.notes.append(note)
        return note

    def _thread(self, number: str) -> Thread:
        return self.threads.get(f"issues/{number}") or self.threads[f"pulls/{number}"]

    def _user(self, login: str) -> Doc | None:
        return None if login == DELETED else {"login": login, "id": PEOPLE[login], "type": "User"}

    def _issue(self, thread: Thread) -> Doc:
        row = {
            "number": thread.number,
            "title": thread.title,
            "body": thread.body,
            "state": thread.state,
            "user": self._user(thread.author),
            "html_url": self.url(f"{REPOSITORY}/issues/{thread.number}"),
        }
        return {**row, "pull_request": {"url": "…"}} if thread.place.startswith("pulls/") else row

    def _pull(self, thread: Thread) -> Doc:
        return {
            "number": thread.number,
            "html_url": self.url(f"{REPOSITORY}/pull/{thread.number}"),
            "title": thread.title,
            "body": thread.body,
            "state": thread.state,
            "merged": thread.merged,
            "mergeable": None if thread.state == "closed" else not self.has_conflicts(thread),
            "mergeable_state": "clean",
            "user": self._user(thread.author),
            "head": {"ref": thread.head, "sha": self.tip(thread.head)},
            "base": {"ref": thread.base, "sha": self.tip(thread.base)},
        }

    def _comment(self, note: Note) -> Doc:
        number = note.place.partition("/")[2]
        return {
            "id": note.id,
            "body": note.body,
            "user": self._user(note.author),
            "created_at": iso(note.at),
            "updated_at": iso(note.changed),
            "author_association": "NONE",
            "issue_url": self.url(f"api/v3/repos/{REPOSITORY}/issues/{number}"),
            "html_url": self.url(f"{REPOSITORY}/issues/{number}#issuecomment-{note.id}"),
        }

    def _line_comment(self, note: Note) -> Doc:
        """It is from when it was drafted; submitting its review and pushing to the branch change it, too."""
        head = self.tip(self.threads[note.place].head)
        pushed = note.at + timedelta(hours=1) if head != note.commit else note.at
        row = {
            **self._comment(note),
            "node_id": f"PRRC_{note.id}",
            "created_at": iso(note.at - DRAFTED),
            "updated_at": iso(max(note.changed, note.at, pushed)),
            "pull_request_review_id": note.review,
            "path": note.path,
            "line": note.line,
            "original_line": note.line,
            "start_line": None,
            "side": "RIGHT",
            "subject_type": "line",
            "diff_hunk": "@@ -1,3 +1,3 @@\n def add(a, b):\n-    return a - b\n+    return a + b",
            "commit_id": head,
            "original_commit_id": note.commit,
        }
        return {**row, "in_reply_to_id": note.reply_to} if note.reply_to else row

    def _node(self, note: Note | None) -> Doc | None:
        return None if note is None else {"lastEditedAt": iso(note.edited) if note.edited else None}

    def _review(self, review: Review) -> Doc:
        return {
            "id": review.id,
            "user": self._user(review.author),
            "body": review.body,
            "state": review.state,
            "submitted_at": iso(review.at),
        }

    def _check(self, check: Check) -> Doc:
        return {
            "id": check.id,
            "name": check.name,
            "status": "completed",
            "conclusion": "failure",
            "html_url": self.url(f"{REPOSITORY}/runs/{check.id}"),
            "output": {"title": None, "summary": None, "text": None},
            "app": {"slug": "github-actions"},
        }

    # --- webhooks -------------------------------------------------------------------------

    def delivery(self, what: str, about: Any) -> Delivery:
        event, payload = self.payload(what, about)
        headers = {f"{self.header}-Event": event, f"{self.header}-Delivery": delivery_id()}
        repository = {"id": 1, "full_name": REPOSITORY, "name": "calc"}
        return Delivery(headers, json.dumps({**payload, "repository": repository}).encode())

    def payload(self, what: str, about: Any) -> tuple[str, Doc]:
        match what:
            case "comment":
                issue = self._issue(self.threads[about.place])
                return "issue_comment", {"action": "created", "issue": issue, "comment": self._comment(about)}
            case "review":
                pull = self._pull(self.threads[about.place])
                return "pull_request_review", {
                    "action": "submitted",
                    "pull_request": pull,
                    "review": self._review(about),
                }
            case "check":
                return "check_run", {"action": "completed", "check_run": self._check(about)}
            case "push":
                return "push", {"ref": f"refs/heads/{about}", "after": self.tip(about), "commits": []}
            case _:
                return "pull_request", {"action": "closed", "pull_request": self._pull(about)}

    def sign(self, secret: str, body: bytes) -> dict[str, str]:
        return {"X-Hub-Signature-256": f"sha256={hmac.new(secret.encode(), body, sha256).hexdigest()}"}
