"""Where a conversation is cut: what a summary is to stand for, and what stays.

A call is never parted from its results: a cut comes before a message of the user or of the model, and nowhere else.
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
"""Characters of a result that are shown however small the window is."""


@dataclass(frozen=True)
class Cut:
    """A conversation in two, without its system prompt."""

    older: Sequence[Message]
    """What a summary is to stand for; empty: no summary is worth it, only the tail changes."""
    tail: Sequence[Message]
    """What stays, with long results shortened where they would not fit otherwise."""


def cut(messages: Sequence[Message], estimate: Estimate, cause: Cause) -> Cut | None:
    """Say how to make room in a conversation that begins with a system prompt; None: there is nothing to be won.

    The tail has at most `room.keep` tokens, but at least all that the model has not answered yet.
    """
    room = estimate.room()
    past = messages[1:]
    # Who asks, or is refused, wants less than there is, also where all of it could stay.
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
    """Where the tail begins. The first message is never a part of it, or nothing would be won."""
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
    """Where the tail begins if what people and the model said, which is never shortened, is too long to stay.

    The last word of a person stays in any case: it is what the model is to answer.
    """
    words = [at for at in range(start + 1, len(past)) if past[at].role == "user"]
    if not words:
        return start if past[start].role == "user" else len(past)
    return next((at for at in words if estimate.messages(*past[at:]) <= space), words[-1])


def _first_unanswered(past: Sequence[Message]) -> int:
    """Where that begins which the model has not answered yet; a call belongs to its results."""
    last = len(past) - 1
    answered = next((at for at in range(last, -1, -1) if past[at].role == "assistant"), None)
    if answered is None:
        return max(0, last)
    return answered if past[answered].tool_calls or answered == last else answered + 1


def _is_worth_it(older: Sequence[Message], estimate: Estimate, more_than: int) -> bool:
    """Whether there is something to summarize but an earlier summary."""
    fresh = older[1:] if older and summary_in(older[0]) is not None else older
    return estimate.messages(*fresh) > more_than


def _fitted(tail: Sequence[Message], estimate: Estimate, space: int) -> list[Message]:
    """The tail, its longest results shown with head and tail only where all of it has more than `space` tokens."""
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
    """How much each may take at most, so that all of them fit: small ones leave their share to the others."""
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
    """The text, its middle left out where it has more than `shown` characters."""
    left_out = len(text) - shown
    if left_out <= 0:
        return text
    head = shown // 2
    tail = text[len(text) - (shown - head) :]
    return f"{text[:head]}\n[… {left_out:,} characters left out to save room …]\n{tail}"
