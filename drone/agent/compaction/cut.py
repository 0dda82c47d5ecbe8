"""Where a conversation is cut: the part a summary replaces, and the part that stays.

A call is never separated from its results: a cut is always before a message of the user or of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from drone.agent.compaction.estimate import Estimate
from shared.messages import Message
from shared.transcripts import summary_in

Cause = Literal["window", "overflow", "asked"]
_LEAST_SHOWN = 200
"""Characters of a result that are always shown, even with a small window."""


@dataclass(frozen=True)
class Cut:
    """A conversation split in two, without its system prompt."""

    older: Sequence[Message]
    """The part a summary replaces; empty: a summary is not worth it, only the tail changes."""
    tail: Sequence[Message]
    """The part that stays, with long results shortened if they would not fit otherwise."""


def cut(messages: Sequence[Message], estimate: Estimate, cause: Cause) -> Cut | None:
    """Return how to make room in a conversation that begins with a system prompt; None if no room can be gained.

    The tail has at most `room.keep` tokens, but always includes everything the model has not answered yet.
    """
    room = estimate.room()
    past = messages[1:]
    # A requested compaction, or one after a refusal, must shrink the conversation even if all of it could stay.
    keep = room.keep if cause == "window" else min(room.keep, estimate.messages(*past) // 2)
    space = max(room.full - room.summary - room.footer - estimate.question(messages[:1]), room.window // 8)
    start = _start(past, estimate, keep)
    tail: Sequence[Message] = _fitted(past[start:], estimate, space)
    if estimate.messages(*tail) > space:
        start = _later_start(past, start, estimate, space)
        tail = past[start:]
    if _is_worth_it(past[:start], estimate, room.summary // 2 if cause == "window" else 0):
        return Cut(past[:start], tail)
    return Cut((), [*past[:start], *tail]) if tail != past[start:] else None


def _start(past: Sequence[Message], estimate: Estimate, keep: int) -> int:
    """Where the tail begins. The first message is never part of it, or no room would be gained."""
    start = _first_unanswered(past)
    tokens = estimate.messages(*past[start:])
    for at in range(start - 1, 0, -1):
        tokens += estimate.messages(past[at])
        if tokens > keep:
            break
        if past[at].role != "tool":
            start = at
    return start


def _later_start(past: Sequence[Message], start: int, estimate: Estimate, space: int) -> int:
    """Where the tail begins if the messages of users and the model, which are never shortened, are too long to stay.

    The last user message always stays: it is the one the model must answer.
    """
    words = [at for at in range(start + 1, len(past)) if past[at].role == "user"]
    if not words:
        return start if past[start].role == "user" else len(past)
    return next((at for at in words if estimate.messages(*past[at:]) <= space), words[-1])


def _first_unanswered(past: Sequence[Message]) -> int:
    """Start of the messages that the model has not answered yet; a call stays with its results."""
    last = len(past) - 1
    answered = next((at for at in range(last, -1, -1) if past[at].role == "assistant"), None)
    if answered is None:
        return max(0, last)
    return answered if past[answered].tool_calls or answered == last else answered + 1


def _is_worth_it(older: Sequence[Message], estimate: Estimate, more_than: int) -> bool:
    """Whether there is anything to summarize besides an earlier summary."""
    fresh = older[1:] if older and summary_in(older[0]) is not None else older
    return estimate.messages(*fresh) > more_than


def _fitted(tail: Sequence[Message], estimate: Estimate, space: int) -> list[Message]:
    """Return the tail; if it exceeds `space` tokens, only head and tail of its longest results are kept."""
    too_many = estimate.messages(*tail) - space
    if too_many <= 0:
        return list(tail)
    results = [estimate.messages(message) for message in tail if message.role == "tool"]
    most = _most_each(results, sum(results) - too_many)
    return [
        _shortened(message, estimate, most) if message.role == "tool" and estimate.messages(message) > most else message
        for message in tail
    ]


def _most_each(sizes: Sequence[int], space: int) -> int:
    """Maximum size of each, so that all of them fit: small ones leave the rest of their share to the others."""
    left = space
    for number, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - number)
        if size > share:
            return max(0, share)
        left -= size
    return max(sizes, default=0)


def _shortened(message: Message, estimate: Estimate, most: int) -> Message:
    shown = int(len(message.content) * most / estimate.messages(message))
    while True:
        shown = max(shown, _LEAST_SHOWN)
        short = message.model_copy(update={"content": head_and_tail(message.content, shown)})
        if shown == _LEAST_SHOWN or estimate.messages(short) <= most:
            return short if len(short.content) < len(message.content) else message
        shown = shown * 4 // 5


def head_and_tail(text: str, shown: int) -> str:
    """Return the text; if it has more than `shown` characters, its middle is left out."""
    left_out = len(text) - shown
    if left_out <= 0:
        return text
    head = shown // 2
    tail = text[len(text) - (shown - head) :]
    return f"{text[:head]}\n[… {left_out:,} characters left out to save room …]\n{tail}"
