"""What a drone reads and writes at a code host for the control plane, in one form for GitHub, GitLab and Gitea.

A place is a thread at the host: `issues/3` or `pulls/4`. Ids are the host's own, as text.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from shared.wire import Wire

HostKind = Literal["github", "gitlab", "gitea"]
PullState = Literal["open", "merged", "closed"]
PLACE = r"^(issues|pulls)/[1-9][0-9]{0,17}$"
MARKER = "<!-- dronefleet:"
"""Begins every comment of the fleet: hosts do not show it, and a comment that begins with it is never acted on."""
MOST_COMMENTS = 50
"""Comments that one order reads; the next order reads those after them."""
MAX_BODY = 10_000
"""Characters that are read of a comment."""
MAX_LOG = 8_000
"""Characters that are read of a check's log: its end, where failures are reported."""
Place = Annotated[str, Field(pattern=PLACE)]
HostId = Annotated[str, Field(max_length=128, pattern=r"^[^\x00]*$")]


def marked(subject: str, text: str) -> str:
    """The body of a comment of the fleet: the mark names what it is about, so that it is found instead of repeated."""
    return f"{MARKER}{subject} -->\n{text}"


def is_ours(body: str) -> bool:
    """Whether the fleet wrote a comment. A quotation of one does not begin with the mark, and does not count."""
    return body.lstrip().startswith(MARKER)


class CommentToWrite(Wire):
    """A comment that is to exist at the host with this text: created once, later changed."""

    id: str
    """Names it in its mark."""
    place: Place
    text: str
    reply_to: HostId | None = None
    """The review comment that it answers (at GitLab: the discussion)."""
    comment: HostId | None = None
    """The host's id for it, if it was written before."""


class SyncCodeHost(Wire):
    """Service: write comments at a code host, and read what happened there."""

    kind: HostKind
    mention: str
    """Comments are read if they contain it."""
    since: datetime | None = None
    """Read comments that changed since then; None: read none."""
    pulls: tuple[int, ...] = ()
    """The fleet's pull requests, of which reviews, checks and state are read."""
    known_checks: tuple[HostId, ...] = ()
    """Failed checks that were read before; their logs are not fetched again."""
    known: tuple[str, ...] = ()
    """What else was read before and is left out, as `comment:ID`, `review:ID` (its text) or `line:ID`."""
    writes: tuple[CommentToWrite, ...] = ()


class SeenComment(Wire):
    """A comment that mentions the fleet."""

    id: HostId
    place: Place
    author: str
    account: HostId
    """The author's id at the host, which outlives a renamed login."""
    text: str
    url: str = ""
    at: datetime
    edited: bool = False
    title: str = ""
    """Of the issue or pull request; written by others, like `about`."""
    about: str = ""


class SeenReviewComment(Wire):
    """A comment on lines of a pull request."""

    id: HostId
    thread: HostId
    """What an answer replies to."""
    author: str
    account: HostId
    path: str
    side: Literal["old", "new"] = "new"
    start_line: int | None = None
    end_line: int | None = None
    quote: str = ""
    commit: str = ""
    text: str
    at: datetime
    edited: bool = False


class SeenReview(Wire):
    """A review of one of the fleet's pull requests: comments on lines, a text about the whole, or both."""

    id: HostId
    author: str
    account: HostId
    text: str = ""
    at: datetime
    edited: bool = False
    comments: tuple[SeenReviewComment, ...] = ()


class SeenCheck(Wire):
    """A failed check of a pull request's head commit."""

    id: HostId
    name: str
    url: str = ""
    log: str = ""
    """The end of its log, without secrets; the host's summary if the log cannot be read. Empty for a known check."""


class SeenPull(Wire):
    """A pull request of the fleet, as it is now."""

    number: int
    state: PullState
    head: str
    """Its commit."""
    branch: str = ""
    base: str = ""
    """The branch that it is to be merged into."""
    base_commit: str = ""
    conflicts: bool = False
    """The host says that it cannot be merged into its base."""
    reviews: tuple[SeenReview, ...] = ()
    checks: tuple[SeenCheck, ...] = ()
    more: bool = False
    """It has further reviews, for which there was no room; the newest ones come first."""


class WrittenComment(Wire):
    """What became of a comment that was to be written."""

    id: str
    comment: HostId | None = None
    """The host's id for it; None: it was not written, and `error` says why."""
    error: str = ""


class CodeHostReading(Wire):
    """The result of the service, in the response of its order."""

    via: str = ""
    comments: tuple[SeenComment, ...] = ()
    pulls: tuple[SeenPull, ...] = ()
    written: tuple[WrittenComment, ...] = ()
    more_comments: bool = False
    """There are more behind the last of `comments`."""
    left_out: tuple[int, ...] = ()
    """The pull requests for which there was no room: to be read next."""
    comments_read: bool = False
    """All comments that were asked for were read, also if `why` says that something else was not."""
    why: str = ""
    """Why something could not be read; empty: everything was."""
