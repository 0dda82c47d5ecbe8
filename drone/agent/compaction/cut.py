"""Where a conversation is cut: the part a summary replaces, and the part that stays.

A call is never separated from its results: a cut is always before a message of the user or of the model. A result that
the model has not seen yet always stays; where there is too little room it is shortened, and so is its call.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from drone.agent.answer_checks import parsed_arguments
from drone.agent.compaction.estimate import Estimate
from shared.messages import Message, ToolCall
from shared.transcripts import summary_in

Cause = Literal["window", "overflow", "asked"]
_LEAST_LEFT_OUT = 100
"""Characters; the note about fewer of them would be as long."""
_LEAST_SHARE = 20
"""Tokens of one text, below which shortening it further saves nothing."""


@dataclass(frozen=True)
class Cut:
    """A conversation split in two, without its system prompt."""

    older: Sequence[Message]
    """The part a summary replaces; empty: a summary is not worth it, only the tail changes."""
    tail: Sequence[Message]
    """The part that stays, with long results and calls shortened if they would not fit otherwise."""


def cut(messages: Sequence[Message], estimate: Estimate, cause: Cause) -> Cut | None:
    """Return how to make room in a conversation that begins with a system prompt; None if no room can be gained.

    The tail has at most `room.keep` tokens, but always includes everything the model has not answered yet.
    """
    room = estimate.room()
    past = messages[1:]
    space = max(room.full - room.summary - room.footer - estimate.question(messages[:1]), room.window // 8)
    # A requested compaction, or one after a refusal, must shrink the conversation even if all of it could stay.
    keep = room.keep if cause == "window" else min(room.keep, estimate.messages(*past) // 2)
    start = _start(past, estimate, min(keep, space))
    tail: Sequence[Message] = past[start:]
    if estimate.messages(*tail) > space:
        if any(message.role == "tool" for message in tail):
            tail = _fitted(tail, estimate, space)
        else:
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
    """Return the tail in `space` tokens, if possible: results and the model's own words are shortened.

    The results get at least half of what the users' messages leave, and at least half of `room.unseen`.
    """
    sizes = [estimate.messages(message) for message in tail]
    results = [size for message, size in zip(tail, sizes, strict=True) if message.role == "tool"]
    said = sum(size for message, size in zip(tail, sizes, strict=True) if message.role == "user")
    left = max(space - said, estimate.room().unseen)
    own = max(left - sum(results), left // 2)
    short = [_shortened_words(each, estimate, own) if each.role == "assistant" else each for each in tail]
    left -= sum(estimate.messages(each) for each in short if each.role == "assistant")
    most = _most_each(results, left)
    return [_shortened_result(each, estimate, most) if each.role == "tool" else each for each in short]


def _most_each(sizes: Sequence[int], space: int) -> int:
    """Maximum size of each, so that all of them fit: small ones leave the rest of their share to the others."""
    left = space
    for number, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - number)
        if size > share:
            return max(0, share)
        left -= size
    return max(sizes, default=0)


def _shortened_result(message: Message, estimate: Estimate, most: int) -> Message:
    if estimate.messages(message) <= most:
        return message
    overhead = estimate.messages(message.model_copy(update={"content": ""}))
    return message.model_copy(update={"content": within(message.content, estimate, most - overhead)})


def _shortened_words(message: Message, estimate: Estimate, most: int) -> Message:
    """The model's message in about `most` tokens. Its signed thinking stays: its provider accepts it only unchanged."""
    share, short = most, message
    while estimate.messages(short) > most and share >= _LEAST_SHARE:
        calls = (
            call.model_copy(update={"arguments": _shortened_arguments(call, estimate, share)})
            for call in message.tool_calls
        )
        texts = {name: within(getattr(message, name), estimate, share) for name in ("content", "thinking")}
        short = message.model_copy(update={**texts, "tool_calls": tuple(calls)})
        share = share * 3 // 4
    return short


def _shortened_arguments(call: ToolCall, estimate: Estimate, most: int) -> str:
    """The arguments as JSON, with each value that has more than `most` tokens shortened, as a text."""
    given = parsed_arguments(call)
    if not isinstance(given, dict):
        return within(call.arguments, estimate, most)
    short = {name: _shortened_value(value, estimate, most) for name, value in given.items()}
    return call.arguments if short == given else json.dumps(short, ensure_ascii=False)


def _shortened_value(value: Any, estimate: Estimate, most: int) -> Any:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    short = within(text, estimate, most)
    return value if short == text else short


def within(text: str, estimate: Estimate, most: int) -> str:
    """Return head and tail of a text in at most `most` tokens, if it can be shortened that far."""
    shown, short = len(text), text
    while shown and (tokens := estimate.text(short)) > most:
        shown = min(shown * 4 // 5, max(0, shown * most // tokens))
        short = head_and_tail(text, shown)
    return short


def head_and_tail(text: str, shown: int) -> str:
    """Return the text; if it has clearly more than `shown` characters, its middle is left out."""
    left_out = len(text) - shown
    if left_out < _LEAST_LEFT_OUT:
        return text
    head = shown // 2
    tail = text[len(text) - (shown - head) :]
    return f"{text[:head]}\n[… {left_out:,} characters left out to save room …]\n{tail}"
