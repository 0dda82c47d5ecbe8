"""The documents of sessions and of their trees, for people and scripts."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from control_plane.contract.declarations.operation import About
from control_plane.contract.documents.base import Document
from control_plane.contract.documents.orders import StatsDocument


class TurnDocument(Document):
    """An order as shown in its session."""

    order: str
    user: str
    prompt: str
    provider: str
    model: str
    mode: str
    status: str
    """processing, finished, error or aborted."""
    reason: str
    response: str | None
    branch: str | None
    head_commit: str | None
    stats: StatsDocument
    """So far, while it is processing; `duration_label` is `pending` until it has ended."""
    created_at: datetime
    ended_at: datetime | None


class EntryDocument(Document):
    """One entry of a session's tree."""

    id: str
    kind: str
    """turn, or a note at a turn: compaction, leaf, label, model_change, mode_change, name."""
    parent: str | None
    """The turn before it, or the turn that a note is about; None: the root."""
    session: str
    """The session in which it was written; a fork also shows turns from another session."""
    on_path: bool
    """Visible to the next turn."""
    is_leaf: bool
    error: bool
    """A turn whose model could not be called: the next turn does not see it."""
    label: str | None
    data: dict[str, Any]
    turn: TurnDocument | None
    at: datetime


class SessionSummary(Document):
    """A row of `fleet session ls`."""

    id: Annotated[str, About("session")]
    name: Annotated[str, About("name")]
    title: Annotated[str, About("title")]
    """The name; without one, the title that a model wrote, else the first line of the first prompt."""
    project: Annotated[str, About("project")]
    owner: Annotated[str | None, About("owner")]
    """The e-mail address of the user who started it, or `not a member`; null: no user, but a script or a service."""
    mode: Annotated[str, About("mode")]
    approve: str | None
    thinking: str | None
    allow: list[str]
    limits: dict[str, Any]
    """Of its orders that set none, by name."""
    turns: Annotated[int, About("turns")]
    """Its own turns, including unfinished ones."""
    running: Annotated[str | None, About("running")]
    """The order that must end before the session's next one begins."""
    leaf: str | None
    """The entry that the next turn continues from; None: the root."""
    forked_from: str | None
    compact: str | None
    """A compaction runs before the next question, with these instructions."""
    left: str | None
    """The last entry of a branch that was left; the next turn begins with its summary."""
    created_at: datetime
    last_activity_at: Annotated[datetime, About("last activity")]
    last_turn: str | None = None
    """The status of its newest turn: processing, finished, error or aborted; null: it has none."""


class SessionDocument(SessionSummary):
    """A session in full (`fleet session show --json`)."""

    restack: bool
    """It is brought up to date when a session of `stacked_on` has new work."""
    stacked_on: list[str]
    """Ids of the sessions whose work its own builds on."""
    entries: list[EntryDocument]
    """In the order in which they were written; those of the session that it was forked from come first."""
    unfinished: list[TurnDocument]
    """Turns that have no entry yet."""


class CompactDocument(Document):
    """How a requested compaction is carried out."""

    session: str
    order: str | None
    """The running order that was notified; None: the next one does it."""
    told: str
    """One sentence for people."""


class HeadDocument(Document):
    """The latest work of a session, and where to fetch it."""

    session: str
    order: str
    branch: str
    commit: str
    pushed: bool
    """The branch is on the remote."""
    bundle: bool
    """The commits are stored here as a git bundle."""
    project: str
    git_url: str
