"""Who is next when an agent's run has ended, against a small model that was written by itself (S-050 to S-055)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from control_plane.teams.routing import Decision, Read, Said, Situation, decide

START = datetime(2026, 11, 21, tzinfo=UTC)
AGENTS = ("lead", "backend", "tester", "gone")
ACTIVE = frozenset(AGENTS[:3])
TAGS = st.lists(st.sampled_from([*AGENTS, "user", "nobody"]), max_size=3).map(tuple)


@dataclass(frozen=True)
class Thread:
    """A thread as lists of tags; each comment is a minute after the one before, by a clock that may be set back."""

    comments: tuple[tuple[str, tuple[str, ...]], ...]
    runs: tuple[tuple[str, int], ...]
    """Which agent was briefed before which comment was written."""
    last: tuple[str, ...] | None
    boss: str | None
    hand_offs: int
    limit: int
    set_back: int | None
    """Before which comment the clock was set back. None: never, and no run left a comment."""

    def at(self, index: float) -> datetime:
        behind = self.set_back is not None and index >= self.set_back
        return START + timedelta(minutes=index, hours=-2 if behind else 0)

    def situation(self) -> Situation:
        latest = {name: max(place for agent, place in self.runs if agent == name) for name, _ in self.runs}
        known = self.set_back is not None
        read = {name: Read(self.at(place - 0.5), place if known else None) for name, place in latest.items()}
        return Situation("lead", ACTIVE, self.boss, read, self.hand_offs, self.limit)

    def newest_first(self) -> Iterator[Said]:
        for index in reversed(range(len(self.comments))):
            author, tags = self.comments[index]
            yield Said(index, author, text_of(tags), self.at(index))


def text_of(tags: tuple[str, ...]) -> str:
    return "Some words, " + ", ".join(f"@{tag}" for tag in tags) + "."


def modelled(thread: Thread) -> tuple[str, str]:
    """Who is next and how, written down as the rules are read: all mentions in one list, the newest first."""
    to, how = "user", "returned"
    if thread.boss in ACTIVE:
        to, how = str(thread.boss), "escalated"
    mentions = [
        (index, name)
        for index, (author, tags) in enumerate(thread.comments)
        for name in tags
        if author != "system" and name in ACTIVE and name != "lead"
    ]
    unanswered = [
        name for index, name in mentions if all(place <= index for agent, place in thread.runs if agent == name)
    ]
    if unanswered:
        to, how = unanswered[-1], "handed_off"
    valid = [name for name in thread.last or () if name == "user" or name in ACTIVE]
    if valid:
        to, how = valid[-1], "tag"
    if to != "user" and thread.limit and thread.hand_offs >= thread.limit:
        to, how = "user", "hand_off_limit"
    return to, how


THREADS = st.builds(
    Thread,
    comments=st.lists(st.tuples(st.sampled_from([*AGENTS, "user", "system"]), TAGS), max_size=8).map(tuple),
    runs=st.lists(st.tuples(st.sampled_from(AGENTS), st.integers(0, 8)), max_size=5).map(tuple),
    last=st.one_of(st.none(), TAGS),
    boss=st.sampled_from([None, "backend", "tester", "gone"]),
    hand_offs=st.integers(0, 4),
    limit=st.integers(0, 4),
    set_back=st.one_of(st.none(), st.integers(0, 8)),
)


def decided(thread: Thread) -> Decision:
    last = text_of(thread.last) if thread.last is not None else None
    return decide(last, thread.newest_first(), thread.situation())


@given(THREADS)
def test_every_decision_is_the_models(thread: Thread) -> None:
    found = decided(thread)
    assert (found.to, found.how) == modelled(thread)
    assert (found.note.kind if found.note else "tag") == found.how


def after(last: str | None, **fields: Any) -> tuple[str, str]:
    """Who is next after a run of `lead`."""
    found = decide(last, iter(()), Situation("lead", ACTIVE, **fields))
    return found.to, found.how


def test_the_last_valid_tag_of_the_last_comment_decides() -> None:
    assert after("@backend did it; @tester, go on. @nobody, `@user`") == ("tester", "tag")
    assert after("more to do: @lead") == ("lead", "tag")
