"""The interface of a code host as this service needs it, and readers of the hosts' answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from drone.services.pull_request.api import HostApi, HostRefused, Json
from shared.code_hosts import MAX_BODY, CommentToWrite, SeenComment, SeenPull, SyncCodeHost, is_ours

Row = Mapping[str, Json]
MOST_PAGES = 20
PAGE = 50
MOST_REVIEW_COMMENTS = 200
"""The newest on the lines of a pull request; the fleet's own do not count."""
MOST_CHECKS = 5
_EDITED_SECONDS = 1.0
"""Hosts may store the two times of a new comment separately."""


_GONE = frozenset({404, 410})


class PullGone(HostRefused):
    """The host says that there is no such pull request: it was deleted, or the login may not see it."""


class HostReader(Protocol):
    """One repository on a code host. Every call raises NotLetIn or HostRefused."""

    def comments(self, asked: SyncCodeHost) -> Iterator[SeenComment]:
        """The comments since `asked.since` that contain the mention, oldest first."""
        ...

    def pull(self, number: int, known_checks: frozenset[str]) -> SeenPull:
        """A pull request with its reviews and the failed checks of its head. Also raises PullGone."""
        ...

    def find(self, wanted: CommentToWrite, mark: str) -> str | None:
        """The id of the comment that begins with `mark`, if it exists."""
        ...

    def write(self, wanted: CommentToWrite, comment: str | None, body: str) -> str:
        """Create the comment, or change the one with this id; returns its id."""
        ...


@dataclass(frozen=True)
class Answers:
    """Reads lists from a host's API, page by page."""

    api: HostApi

    def rows(self, path: str, size: int = PAGE, name: str = "per_page") -> Iterator[Row]:
        """All rows of a list, up to MOST_PAGES pages."""
        joint = "&" if "?" in path else "?"
        for page in range(1, MOST_PAGES + 1):
            found = rows_of(self.api.call("GET", f"{path}{joint}{name}={size}&page={page}"))
            yield from found
            if len(found) < size:
                return

    def row(self, path: str) -> Row:
        """One object. Raises HostRefused if the answer is none."""
        return row_of(self.api.call("GET", path))

    def pull(self, path: str) -> Row:
        """A pull request. Raises PullGone, too."""
        try:
            return self.row(path)
        except HostRefused as error:
            if error.status in _GONE:
                raise PullGone(str(error), error.status) from error
            raise


def rows_of(answer: Json) -> list[Row]:
    return [each for each in answer if isinstance(each, Mapping)] if isinstance(answer, list) else []


def row_of(answer: Json) -> Row:
    if not isinstance(answer, Mapping):
        raise HostRefused("unexpected answer from the host")
    return answer


def at(row: Row, *keys: str) -> Json:
    """A value inside nested objects; None if a part is missing."""
    value: Json = row
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def text(row: Row, *keys: str, limit: int = MAX_BODY) -> str:
    """A text inside nested objects, cut to `limit` characters; empty for anything else."""
    value = at(row, *keys)
    return value[:limit].replace("\0", "") if isinstance(value, str) else ""


def number(row: Row, *keys: str) -> int | None:
    value = at(row, *keys)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def identity(row: Row, *keys: str) -> str:
    """An id as text. Raises HostRefused without one."""
    value = at(row, *keys)
    if isinstance(value, bool) or not isinstance(value, int | str) or not str(value):
        raise HostRefused("unexpected answer from the host: an object without an id")
    return str(value)[:128]


def account(row: Row) -> str:
    """The id of the account that wrote it; empty for one that was deleted, which GitHub replaces with null."""
    return identity(row, "user", "id") if row.get("user") is not None else ""


def moment(row: Row, *keys: str) -> datetime:
    """A time. Raises HostRefused without one."""
    try:
        found = datetime.fromisoformat(text(row, *keys))
    except ValueError as error:
        raise HostRefused("unexpected answer from the host: an object without a time") from error
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def was_edited(row: Row, published: datetime | None = None) -> bool:
    """Whether a comment was changed after it was written, or `published` later, perhaps by another user."""
    if not text(row, "updated_at"):
        return False
    written = moment(row, "created_at")
    since = max(written, published or written)
    return (moment(row, "updated_at") - since).total_seconds() > _EDITED_SECONDS


def is_new_mention(row: Row, asked: SyncCodeHost) -> bool:
    """Whether a comment mentions the fleet and was not read before."""
    body = row.get("body")
    mentions = isinstance(body, str) and asked.mention.lower() in body.lower() and not is_ours(body)
    return mentions and f"comment:{row.get('id')}" not in asked.known


def iso(when: datetime) -> str:
    """A time in an address."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def quoted(hunk: str, lines: int) -> str:
    """The last lines of a hunk, which are those that a comment is about."""
    shown = [line for line in hunk.split("\n") if not line.startswith("@@")]
    return "\n".join(shown[-min(max(lines, 1), 40) :])
