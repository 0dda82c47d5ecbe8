"""GitHub and GitHub Enterprise, by the REST API (version 2022-11-28), and by GraphQL for what that does not say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from urllib.parse import quote

from drone.services.code_host.github_objects import comment_of, pull_of
from drone.services.code_host.host_answers import (
    MOST_CHECKS,
    MOST_REVIEW_COMMENTS,
    Answers,
    Row,
    account,
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
from drone.services.pull_request.api import HostRefused, Json
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

_FAILED = frozenset({"failure", "timed_out"})
_HIDDEN = frozenset({"PENDING", "DISMISSED"})
_EDITS = "query($ids:[ID!]!){nodes(ids:$ids){... on PullRequestReviewComment{lastEditedAt}}}"
_MOST_NODES = 100


@dataclass(frozen=True)
class GitHubReader:
    """One repository; `root` is `repos/OWNER/NAME`."""

    answers: Answers
    root: str

    def comments(self, asked: SyncCodeHost) -> Iterator[SeenComment]:
        assert asked.since is not None
        query = f"sort=updated&direction=asc&since={iso(asked.since)}"
        for row in self.answers.rows(f"{self.root}/issues/comments?{query}"):
            if is_new_mention(row, asked):
                yield self._comment(row)

    def _comment(self, row: Row) -> SeenComment:
        issue = text(row, "issue_url").rpartition("/")[2]
        about = self.answers.row(f"{self.root}/issues/{issue}")
        kind = "pulls" if about.get("pull_request") else "issues"
        return comment_of(row, f"{kind}/{issue}", about)

    def pull(self, number: int, known_checks: frozenset[str]) -> SeenPull:
        path = f"{self.root}/pulls/{number}"
        seen = pull_of(number, self.answers.pull(path))
        if seen.state != "open":
            return seen
        more = {
            "base_commit": self._tip(seen.base) if seen.conflicts else "",
            "reviews": tuple(self._reviews(path)),
            "checks": tuple(self._checks(seen.head, known_checks)),
        }
        return seen.model_copy(update=more)

    def _tip(self, branch: str) -> str:
        return text(self.answers.row(f"{self.root}/branches/{quote(branch, safe='')}"), "commit", "sha")

    def _reviews(self, path: str) -> Iterator[SeenReview]:
        rows = self.answers.rows(f"{path}/comments?sort=created&direction=desc")
        newest = list(islice((row for row in rows if not is_ours(text(row, "body"))), MOST_REVIEW_COMMENTS))[::-1]
        reviews = [row for row in self.answers.rows(f"{path}/reviews") if row.get("state") not in _HIDDEN]
        edited = self._edited(newest, {identity(row, "id"): moment(row, "submitted_at") for row in reviews})
        of_review: dict[str, list[SeenReviewComment]] = defaultdict(list)
        for row in newest:
            comment = _review_comment(row, edited=identity(row, "id") in edited)
            of_review[_review_of(row)].append(comment)
        for row in reviews:
            comments, body = tuple(of_review.get(identity(row, "id"), ())), text(row, "body")
            if not (comments or body) or is_ours(body):
                continue
            yield SeenReview(
                id=identity(row, "id"),
                author=text(row, "user", "login"),
                account=account(row),
                text=body,
                at=moment(row, "submitted_at"),
                comments=comments,
            )

    def _edited(self, comments: Sequence[Row], submitted: Mapping[str, datetime]) -> frozenset[str]:
        """The ids of the comments that were edited after their review was submitted; before, only its author can.

        A push also sets `updated_at`: of those that it says were changed, GraphQL says whether they were edited.
        """
        changed = [row for row in comments if was_edited(row, submitted.get(_review_of(row)))]
        edited = set()
        for start in range(0, len(changed), _MOST_NODES):
            part = changed[start : start + _MOST_NODES]
            for row, node in zip(part, self._nodes([identity(each, "node_id") for each in part]), strict=True):
                since = submitted.get(_review_of(row)) or moment(row, "created_at")
                if node is None or (text(node, "lastEditedAt") and moment(node, "lastEditedAt") > since):
                    edited.add(identity(row, "id"))
        return frozenset(edited)

    def _nodes(self, ids: Sequence[str]) -> list[Json]:
        """What GraphQL says of them, in this order; None for one that is gone. Raises HostRefused."""
        # gh knows its address. Over HTTP, GraphQL is beside the REST API of GitHub Enterprise, and within GitHub's.
        path = "graphql" if self.answers.api.via == "gh" else "../graphql"
        answer = row_of(self.answers.api.call("POST", path, {"query": _EDITS, "variables": {"ids": list(ids)}}))
        nodes = at(answer, "data", "nodes")
        if not isinstance(nodes, list) or len(nodes) != len(ids):
            raise HostRefused("unexpected answer from the host: it does not say which comments were edited")
        return nodes

    def _checks(self, head: str, known: frozenset[str]) -> Iterator[SeenCheck]:
        answer = self.answers.row(f"{self.root}/commits/{head}/check-runs?filter=latest&per_page=100")
        failed = [row for row in rows_of(answer.get("check_runs")) if row.get("conclusion") in _FAILED]
        for row in failed[:MOST_CHECKS]:
            check = identity(row, "id")
            log = "" if check in known else self._log(check, row)
            yield SeenCheck(id=check, name=text(row, "name", limit=200), url=text(row, "html_url"), log=log)

    def _log(self, check: str, row: Row) -> str:
        """The job's log, for a check of GitHub Actions; else what the check says about itself."""
        said = "\n\n".join(filter(None, (text(row, "output", part) for part in ("title", "summary", "text"))))
        if text(row, "app", "slug") != "github-actions":
            return said[-MAX_LOG:]
        try:
            return self.answers.api.text(f"{self.root}/actions/jobs/{check}/logs")[-MAX_LOG:]
        except HostRefused as error:
            return f"{said}\n\n(The log could not be read: {error})"[-MAX_LOG:]

    def find(self, wanted: CommentToWrite, mark: str) -> str | None:
        kind, _, issue = wanted.place.partition("/")
        of = f"pulls/{issue}/comments" if wanted.reply_to else f"issues/{issue}/comments"
        assert kind in {"issues", "pulls"}
        rows = self.answers.rows(f"{self.root}/{of}")
        return next((identity(row, "id") for row in rows if text(row, "body").startswith(mark)), None)

    def write(self, wanted: CommentToWrite, comment: str | None, body: str) -> str:
        issue = wanted.place.partition("/")[2]
        of = "pulls" if wanted.reply_to else "issues"
        if comment is not None:
            method, path = "PATCH", f"{self.root}/{of}/comments/{comment}"
        elif wanted.reply_to:
            method, path = "POST", f"{self.root}/pulls/{issue}/comments/{wanted.reply_to}/replies"
        else:
            method, path = "POST", f"{self.root}/issues/{issue}/comments"
        return identity(row_of(self.answers.api.call(method, path, {"body": body})), "id")


def _review_of(comment: Row) -> str:
    return str(comment.get("pull_request_review_id"))


def _review_comment(row: Row, *, edited: bool) -> SeenReviewComment:
    old = row.get("side") == "LEFT"
    end = number(row, "line") or number(row, "original_line")
    start = number(row, "start_line") or end
    whole = at(row, "subject_type") == "file"
    lines = (end - start + 1) if start and end else 1
    return SeenReviewComment(
        id=identity(row, "id"),
        thread=str(row.get("in_reply_to_id") or identity(row, "id")),
        author=text(row, "user", "login"),
        account=account(row),
        path=text(row, "path", limit=4096),
        side="old" if old else "new",
        start_line=None if whole else start,
        end_line=None if whole else end,
        quote="" if whole else quoted(text(row, "diff_hunk"), lines),
        commit=text(row, "commit_id", limit=64),
        text=text(row, "body"),
        at=moment(row, "created_at"),
        edited=edited,
    )
