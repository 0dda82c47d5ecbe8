"""Gitea and Forgejo, by the API v1. A commit status is a check there; it does not say which log belongs to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

from drone.services.code_host.github_objects import comment_of, pull_of
from drone.services.code_host.host_answers import (
    MOST_CHECKS,
    Answers,
    Row,
    at,
    identity,
    is_new_mention,
    iso,
    moment,
    number,
    quoted,
    row_of,
    rows_of,
    text,
    was_edited,
)
from shared.code_hosts import (
    MAX_LOG,
    CommentToWrite,
    SeenCheck,
    SeenComment,
    SeenPull,
    SeenReview,
    SeenReviewComment,
    SyncCodeHost,
    is_ours,
)

_FAILED = frozenset({"failure", "error"})


@dataclass(frozen=True)
class GiteaReader:
    """One repository; `root` is `repos/OWNER/NAME`."""

    answers: Answers
    root: str
    conflicts: Callable[[SeenPull], bool]
    """Whether git finds any: Gitea calls a draft unmergeable, too, and what it still checks, or could not check."""

    def comments(self, asked: SyncCodeHost) -> Iterator[SeenComment]:
        assert asked.since is not None
        rows = self._rows(f"{self.root}/issues/comments?since={iso(asked.since)}")
        for row in sorted(rows, key=lambda each: text(each, "created_at")):
            if is_new_mention(row, asked):
                yield self._comment(row)

    def _comment(self, row: Row) -> SeenComment:
        pull = text(row, "pull_request_url")
        issue = (pull or text(row, "issue_url")).rpartition("/")[2]
        about = self.answers.row(f"{self.root}/issues/{issue}")
        return comment_of(row, f"{'pulls' if pull else 'issues'}/{issue}", about)

    def pull(self, number: int, known_checks: frozenset[str]) -> SeenPull:
        path = f"{self.root}/pulls/{number}"
        seen = pull_of(number, self.answers.pull(path))
        if seen.state != "open":
            return seen
        conflicts = seen.conflicts and self.conflicts(seen)
        more = {
            "conflicts": conflicts,
            "base_commit": self._tip(seen.base) if conflicts else "",
            "reviews": tuple(self._reviews(path)),
            "checks": tuple(self._checks(seen.head, known_checks)),
        }
        return seen.model_copy(update=more)

    def _tip(self, branch: str) -> str:
        return text(self.answers.row(f"{self.root}/branches/{quote(branch, safe='')}"), "commit", "id")

    def _reviews(self, path: str) -> Iterator[SeenReview]:
        for row in self._rows(f"{path}/reviews"):
            if row.get("state") in {"PENDING", "REQUEST_REVIEW"} or row.get("dismissed") is True:
                continue
            review, body = identity(row, "id"), text(row, "body")
            found = rows_of(self.answers.api.call("GET", f"{path}/reviews/{review}/comments"))
            comments = tuple(_review_comment(each) for each in found if not is_ours(text(each, "body")))
            if (comments or body) and not is_ours(body):
                yield SeenReview(
                    id=review,
                    author=text(row, "user", "login"),
                    account=identity(row, "user", "id"),
                    text=body,
                    at=moment(row, "submitted_at"),
                    comments=comments,
                )

    def _checks(self, head: str, known: frozenset[str]) -> Iterator[SeenCheck]:
        """The newest status of each context, if it failed."""
        newest: dict[str, Row] = {}
        for row in self._rows(f"{self.root}/commits/{head}/statuses?sort=recentupdate"):
            newest.setdefault(text(row, "context", limit=200), row)
        failed = [(name, row) for name, row in newest.items() if row.get("status") in _FAILED]
        for name, row in failed[:MOST_CHECKS]:
            check, url, said = identity(row, "id"), text(row, "target_url"), text(row, "description")
            log = "\n".join(filter(None, (said, f"Log: {url}" if url else "")))
            yield SeenCheck(id=check, name=name, url=url, log="" if check in known else log[-MAX_LOG:])

    def find(self, wanted: CommentToWrite, mark: str) -> str | None:
        issue = wanted.place.partition("/")[2]
        rows = self._replies(issue) if wanted.reply_to else self._rows(f"{self.root}/issues/{issue}/comments")
        return next((identity(row, "id") for row in rows if text(row, "body").startswith(mark)), None)

    def write(self, wanted: CommentToWrite, comment: str | None, body: str) -> str:
        issue = wanted.place.partition("/")[2]
        if comment is not None:
            path, method = f"{self.root}/issues/comments/{comment}", "PATCH"
        elif wanted.reply_to:
            return self._reply(issue, wanted.reply_to, body)
        else:
            path, method = f"{self.root}/issues/{issue}/comments", "POST"
        return identity(row_of(self.answers.api.call(method, path, {"body": body})), "id")

    def _reply(self, pull: str, review_comment: str, body: str) -> str:
        """A comment on the same line, which Gitea shows in the same conversation: its API knows no replies."""
        path = f"{self.root}/pulls/{pull}"
        answered = next((row for row in self._replies(pull) if identity(row, "id") == review_comment), None)
        place = answered or {}
        lines = {
            "new_position": number(place, "position") or 0,
            "old_position": number(place, "original_position") or 0,
        }
        comment = {"path": text(place, "path", limit=4096), "body": body, **lines}
        review = {
            "event": "COMMENT",
            "body": "",
            "commit_id": text(place, "commit_id", limit=64),
            "comments": [comment],
        }
        made = row_of(self.answers.api.call("POST", f"{path}/reviews", review))
        rows = rows_of(self.answers.api.call("GET", f"{path}/reviews/{identity(made, 'id')}/comments"))
        return identity(rows[0] if rows else made, "id")

    def _replies(self, pull: str) -> Iterator[Row]:
        path = f"{self.root}/pulls/{pull}/reviews"
        for review in self._rows(path):
            yield from rows_of(self.answers.api.call("GET", f"{path}/{identity(review, 'id')}/comments"))

    def _rows(self, path: str) -> Iterator[Row]:
        return self.answers.rows(path, name="limit")


def _review_comment(row: Row) -> SeenReviewComment:
    new, old = number(row, "position"), number(row, "original_position")
    line = new or old
    return SeenReviewComment(
        id=identity(row, "id"),
        thread=identity(row, "id"),
        author=text(row, "user", "login"),
        account=identity(row, "user", "id"),
        path=text(row, "path", limit=4096),
        side="old" if new is None and old is not None else "new",
        start_line=line,
        end_line=line,
        quote=quoted(text(row, "diff_hunk"), 1),
        commit=str(at(row, "commit_id") or "")[:64],
        text=text(row, "body"),
        at=moment(row, "created_at"),
        edited=was_edited(row),
    )
