"""The rules for every transcript in the suite, checked on the steps of an order's document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from shared.messages import Message, ToolCall

Doc = dict[str, Any]


def transcript_problems(order: Doc) -> list[str]:
    """The problems in an order's steps: gaps in seq, calls without exactly one result, results without a call.

    A lost run may have ended in the middle of its last message's calls, and undone steps may be cut off anywhere.
    """
    steps = order["steps"]
    kept = [step for step in steps if not step.get("undone")]
    ended = {run["id"]: run["status"] == "lost" for run in order["runs"] if run["status"] != "running"}
    return [*_holes(steps), *(problem for run, lost in ended.items() for problem in _unanswered(kept, run, lost=lost))]


def _holes(steps: Sequence[Doc]) -> list[str]:
    found = [step["seq"] for step in steps]
    return [] if found == list(range(1, len(steps) + 1)) else [f"seq is {found}"]


def _unanswered(steps: Sequence[Doc], run: str, *, lost: bool) -> list[str]:
    of_run = [step for step in steps if step["run"] == run]
    messages = [[call["id"] for call in step["tool_calls"]] for step in of_run if step["kind"] == "assistant"]
    asked = [call for message in messages for call in message]
    cut_off = set(messages[-1]) if lost and messages else set()
    answers = Counter(step["call_id"] for step in of_run if step["kind"] == "tool_result")
    unsound = [call for call in asked if answers[call] != 1 and not (answers[call] == 0 and call in cut_off)]
    wrong = [f"run {run}: call {call} has {answers[call]} results" for call in unsound]
    return wrong + [f"run {run}: result for {call}, which nobody asked" for call in answers if call not in asked]


# --- conversations: every call id is answered by exactly one tool message ---------------------------


def problems(messages: Iterable[Message | Mapping[str, Any]]) -> list[str]:
    """Return every violation of the rule; empty for a valid transcript.

    Messages may be the loop's messages, or documents in the format sent over HTTP.
    """
    found: list[str] = []
    expected: Counter[str] = Counter()
    for at, message in enumerate(_parsed(messages)):
        if message.role == "tool":
            expected[message.tool_call_id or ""] -= 1
            if expected[message.tool_call_id or ""] < 0:
                found.append(
                    f"message {at} answers call {message.tool_call_id!r}, which is unknown or already answered"
                )
            continue
        found.extend(f"call {call!r} is not answered before message {at}" for call in (+expected).elements())
        expected = Counter(call.id for call in message.tool_calls)
        found.extend(f"message {at} has the call id {call!r} {n} times" for call, n in expected.items() if n > 1)
        if message.role == "system" and at:
            found.append(f"message {at} is a system message; only the first message may be one")
    found.extend(f"call {call!r} is never answered" for call in (+expected).elements())
    return found


def assert_valid(messages: Iterable[Message | Mapping[str, Any]]) -> None:
    """Raise AssertionError with every problem of the transcript."""
    found = problems(messages)
    if found:
        raise AssertionError("; ".join(found))


def _parsed(messages: Iterable[Message | Mapping[str, Any]]) -> Iterator[Message]:
    for message in messages:
        yield message if isinstance(message, Message) else _from_wire(message)


def _from_wire(document: Mapping[str, Any]) -> Message:
    calls = (
        ToolCall(id=call["id"], name=call["function"]["name"], arguments=call["function"]["arguments"])
        for call in document.get("tool_calls") or ()
    )
    content = document.get("content")
    return Message(
        role=document["role"],
        content=content if isinstance(content, str) else "",
        tool_calls=tuple(calls),
        tool_call_id=document.get("tool_call_id"),
    )
