"""The transcript of a run: the model's input and output, valid after every step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import overload

from shared.messages import Message, ToolCall
from shared.transcripts import compacted


class Transcript(Sequence[Message]):
    """Messages in order, the system prompt first. Messages are only appended, except for a compaction."""

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

    def compact(self, summary: str, kept: int) -> None:
        """Replace everything between the system prompt and the last `kept` messages with `summary`."""
        system, rest = self._messages[:1], self._messages[1:]
        self._messages = [*system, *compacted(rest, summary, kept)]

    def replace_last(self, *messages: Message) -> None:
        """Replace as many messages at the end with these: the same messages, some of them shortened."""
        self._messages[len(self._messages) - len(messages) :] = messages
