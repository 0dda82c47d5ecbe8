"""Who is next on a task when an agent's run has ended (S-050 to S-055). This module does not use the database."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from control_plane.contract.documents.base import SYSTEM, USER
from control_plane.teams import system_notes
from control_plane.teams.system_notes import Note
from control_plane.teams.tags import last_valid, tags_in

How = Literal["tag", "handed_off", "escalated", "returned", "hand_off_limit"]


class Said(NamedTuple):
    """The parts of a comment that concern routing."""

    id: int
    author: str
    text: str
    at: datetime


class Read(NamedTuple):
    """Until where an agent has read the thread: what there was at the briefing of its latest run."""

    at: datetime
    before: int | None = None
    """Id of the run's first comment. None: only the time is known."""


@dataclass(frozen=True)
class Situation:
    """The facts that decide besides the comments."""

    author: str
    """The agent whose run ended."""
    agents: Collection[str]
    """All active agents of the organization."""
    boss: str | None = None
    read: Mapping[str, Read] = field(default_factory=dict)
    """For each agent that ran on the task."""
    hand_offs: int = 0
    """Consecutive hand-offs from agent to agent before this one."""
    max_hand_offs: int = 0
    """0: no limit."""


@dataclass(frozen=True)
class Decision:
    """Who is next, how that was decided, and the note for the thread."""

    to: str
    """An active agent, or `user`."""
    how: How
    note: Note | None = None


def decide(last: str | None, thread: Iterable[Said], situation: Situation) -> Decision:
    """Who is next after a run whose last comment is `last`; None if it wrote none.

    The last valid tag of that comment decides; earlier tags do not matter (S-050). `thread`, newest comment first, is
    read only if there is no valid tag.
    """
    to = last_valid(last or "", {*situation.agents, USER})
    found = Decision(to, "tag") if to else _without_tag(thread, situation)
    limit = situation.max_hand_offs
    if found.to != USER and 0 < limit <= situation.hand_offs:
        return Decision(USER, "hand_off_limit", system_notes.hand_off_limit(found.to, limit))
    return found


def _without_tag(thread: Iterable[Said], situation: Situation) -> Decision:
    """The agent that was mentioned and has not run since, else the boss, else the user (S-052)."""
    author = situation.author
    if waiting := _open_mention(thread, situation):
        return Decision(waiting, "handed_off", system_notes.handed_off(author, waiting))
    if situation.boss in situation.agents and situation.boss is not None:
        return Decision(situation.boss, "escalated", system_notes.escalated(author, situation.boss))
    return Decision(USER, "returned", system_notes.returned(author))


def _open_mention(thread: Iterable[Said], situation: Situation) -> str | None:
    """The last mentioned agent that has not run since; the system's comments do not count as mentions."""
    others = {*situation.agents} - {situation.author}
    for comment in thread:
        if comment.author == SYSTEM:
            continue
        for name in reversed(tags_in(comment.text)):
            if name in others and _is_unread(comment, situation.read.get(name)):
                return name
    return None


def _is_unread(comment: Said, read: Read | None) -> bool:
    """Whether the comment is newer than what was read; by ids where possible, since a clock can be set back."""
    if read is None:
        return True
    return comment.at > read.at if read.before is None else comment.id >= read.before
