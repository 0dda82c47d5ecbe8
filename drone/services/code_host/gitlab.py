"""GitLab, by the REST API v4; a pull request is called a merge request there, and a check a job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from drone.services.code_host.host_answers import (
    MOST_CHECKS,
    MOST_REVIEW_COMMENTS,
    Answers,
    Row,
    at,
    identity,
    is_new_mention,
    iso,
    moment,
    number,
    row_of,
    rows_of,
    text,
    was_edited,
)
from drone.services.pull_request.api import HostRefused
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

_OF = {"issues": "issues", "pulls": "merge_requests"}


@dataclass(frozen=True)
class GitLabReader:
    """One project; `root` is `projects/OWNER%2FNAME`."""

    answers: Answers
    root: str

    def comments(self, asked: SyncCodeHost) -> Iterator[SeenComment]:
        assert asked.since is not None
        found: list[SeenComment] = []
        for kind, of in _OF.items():
            query = f"scope=all&order_by=updated_at&sort=asc&updated_after={iso(asked.since)}"
            for about in self.answers.rows(f"{self.root}/{of}?{query}"):
                found += self._of_thread(kind, about, asked)
        return iter(sorted(found, key=lambda each: each.at))

    def _of_thread(self, kind: str, about: Row, asked: SyncCodeHost) -> Iterator[SeenComment]:
        assert asked.since is not None
        thread = identity(about, "iid")
        for row in self.answers.rows(f"{self.root}/{_OF[kind]}/{thread}/notes?sort=desc&order_by=created_at"):
            if moment(row, "created_at") < asked.since:
                return
            if row.get("system") is True or row.get("type") == "DiffNote" or not is_new_mention(row, asked):
                continue
            yield SeenComment(
                id=identity(row, "id"),
                place=f"{kind}/{thread}",
                author=text(row, "author", "username"),
                account=identity(row, "author", "id"),
                text=text(row, "body"),
                url=f"{text(about, 'web_url')}#note_{identity(row, 'id')}",
                at=moment(row, "created_at"),
                edited=was_edited(row),
                title=text(about, "title", limit=300),
                about=text(about, "description"),
            )

    def pull(self, number: int, known_checks: frozenset[str]) -> SeenPull:
        path = f"{self.root}/merge_requests/{number}"
        row = self.answers.pull(path)
        open_ = row.get("state") == "opened"
        base = text(row, "target_branch")
        pipeline = at(row, "head_pipeline", "id")
        return SeenPull(
            number=number,
            state="open" if open_ else "merged" if row.get("state") == "merged" else "closed",
            head=text(row, "sha"),
            branch=text(row, "source_branch"),
            base=base,
            base_commit=self._tip(base) if open_ and row.get("has_conflicts") is True else "",
            conflicts=open_ and row.get("has_conflicts") is True,
            reviews=tuple(self._reviews(path)) if open_ else (),
            checks=tuple(self._checks(str(pipeline), known_checks)) if open_ and pipeline else (),
        )

    def _tip(self, branch: str) -> str:
        rows = rows_of(self.answers.api.call("GET", f"{self.root}/repository/branches?search={quote(branch, safe='')}"))
        return next((text(row, "commit", "id") for row in rows if row.get("name") == branch), "")

    def _reviews(self, path: str) -> Iterator[SeenReview]:
        """GitLab keeps no reviews, only notes: those of one author count as one."""
        counted = [
            _review_comment(note, identity(row, "id"))
            for row in self.answers.rows(f"{path}/discussions")
            for note in rows_of(row.get("notes"))
            if self._counts(note)
        ]
        of_author: dict[str, list[SeenReviewComment]] = {}
        for comment in sorted(counted, key=lambda each: each.at)[-MOST_REVIEW_COMMENTS:]:
            of_author.setdefault(comment.account, []).append(comment)
        for comments in of_author.values():
            last = comments[-1]
            yield SeenReview(
                id=f"note-{last.id}",
                author=last.author,
                account=last.account,
                at=last.at,
                comments=tuple(comments),
            )

    def _counts(self, note: Row) -> bool:
        on_lines = note.get("type") == "DiffNote" and note.get("resolved") is not True
        return on_lines and note.get("system") is not True and not is_ours(text(note, "body"))

    def _checks(self, pipeline: str, known: frozenset[str]) -> Iterator[SeenCheck]:
        rows = rows_of(self.answers.api.call("GET", f"{self.root}/pipelines/{pipeline}/jobs?scope[]=failed"))
        failed = [row for row in rows if row.get("status") == "failed" and row.get("allow_failure") is not True]
        for row in failed[:MOST_CHECKS]:
            check = identity(row, "id")
            log = "" if check in known else self._log(check)
            yield SeenCheck(id=check, name=text(row, "name", limit=200), url=text(row, "web_url"), log=log)

    def _log(self, check: str) -> str:
        try:
            return self.answers.api.text(f"{self.root}/jobs/{check}/trace")[-MAX_LOG:]
        except HostRefused as error:
            return f"(The log could not be read: {error})"

    def find(self, wanted: CommentToWrite, mark: str) -> str | None:
        path = self._thread(wanted)
        if wanted.reply_to:
            rows = iter(rows_of(self.answers.row(f"{path}/discussions/{wanted.reply_to}").get("notes")))
        else:
            rows = self.answers.rows(f"{path}/notes")
        return next((identity(row, "id") for row in rows if text(row, "body").startswith(mark)), None)

    def write(self, wanted: CommentToWrite, comment: str | None, body: str) -> str:
        within = f"/discussions/{wanted.reply_to}" if wanted.reply_to else ""
        path = f"{self._thread(wanted)}{within}/notes"
        method = "POST" if comment is None else "PUT"
        address = path if comment is None else f"{path}/{comment}"
        return identity(row_of(self.answers.api.call(method, address, {"body": body})), "id")

    def _thread(self, wanted: CommentToWrite) -> str:
        kind, _, thread = wanted.place.partition("/")
        return f"{self.root}/{_OF[kind]}/{thread}"


def _review_comment(note: Row, discussion: str) -> SeenReviewComment:
    new, old = number(note, "position", "new_line"), number(note, "position", "old_line")
    side = "old" if new is None and old is not None else "new"
    end = old if side == "old" else new
    start = number(note, "position", "line_range", "start", f"{side}_line") or end
    return SeenReviewComment(
        id=identity(note, "id"),
        thread=discussion,
        author=text(note, "author", "username"),
        account=identity(note, "author", "id"),
        path=text(note, "position", f"{side}_path", limit=4096),
        side="old" if side == "old" else "new",
        start_line=start,
        end_line=end,
        commit=text(note, "position", "head_sha", limit=64),
        text=text(note, "body"),
        at=moment(note, "created_at"),
        # Resolving a note also changes its time; what it says then is read as it is.
        edited=was_edited(note) and note.get("resolved_at") is None,
    )
