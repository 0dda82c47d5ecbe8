"""The transcript of a run, and the one rule that it keeps: every call id is answered by exactly one tool message.

An endpoint refuses a conversation that breaks this rule, so it holds after every step, however the step ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

from shared.messages import Message, ToolCall

NOT_RUN = "This call was not run"


class Transcript(Sequence[Message]):
    """Messages in order, only ever appended to."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages = list(messages)

    def append(self, *messages: Message) -> None:
        self._messages.extend(messages)

    def open_calls(self) -> list[ToolCall]:
        """The calls of the last assistant message that have no tool message yet, in their order."""
        answered: set[str | None] = set()
        for message in reversed(self._messages):
            if message.role != "tool":
                return [call for call in message.tool_calls if call.id not in answered]
            answered.add(message.tool_call_id)
        return []

    def last_text(self) -> str:
        """The text of the last assistant message that has one."""
        return next((m.content for m in reversed(self._messages) if m.role == "assistant" and m.content), "")

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        return self._messages[index]

    def __len__(self) -> int:
        return len(self._messages)


def not_run(call: ToolCall, why: str) -> Message:
    """Answer a call that was not run, and say why."""
    return Message(role="tool", tool_call_id=call.id, content=f"{NOT_RUN}: {why}")


def mended(history: Iterable[Message]) -> list[Message]:
    """Return a history that may have been cut anywhere as one that keeps the rule.

    Calls that were never answered are answered as not run; answers to nothing are left out.
    """
    whole: list[Message] = []
    waiting: dict[str, ToolCall] = {}
    for message in history:
        if message.role == "tool":
            if waiting.pop(message.tool_call_id or "", None):
                whole.append(message)
            continue
        whole.extend(not_run(call, "the run had ended.") for call in waiting.values())
        waiting = {call.id: call for call in message.tool_calls}
        whole.append(message)
    whole.extend(not_run(call, "the run had ended.") for call in waiting.values())
    return whole


def problems(messages: Iterable[Message | Mapping[str, Any]]) -> list[str]:
    """Name every place where the rule is broken; empty for a valid transcript.

    Messages may be the loop's own, or documents as they went over HTTP.
    """
    found: list[str] = []
    expected: Counter[str] = Counter()
    for at, message in enumerate(_parsed(messages)):
        if message.role == "tool":
            expected[message.tool_call_id or ""] -= 1
            if expected[message.tool_call_id or ""] < 0:
                found.append(f"message {at} answers {message.tool_call_id!r}, which nobody asked, or once too often")
            continue
        found.extend(f"call {call!r} is not answered before message {at}" for call in (+expected).elements())
        expected = Counter(call.id for call in message.tool_calls)
        found.extend(f"message {at} has the call id {call!r} {n} times" for call, n in expected.items() if n > 1)
        if message.role == "system" and at:
            found.append(f"message {at} is a system message, which only the first may be")
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
