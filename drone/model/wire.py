"""The loop's messages in the words of chat completions, and the pieces of a streamed answer put together again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from drone.agent.protocols import OnDelta, ToolSpec
from shared.messages import Message, ToolCall

NO_ANSWER = "(no answer)"
"""Stands for an assistant message that held nothing: endpoints refuse an empty one."""


def to_wire(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return the transcript as an endpoint wants it, thinking merged into the content (G-007)."""
    return [_message(message) for message in messages]


def tools_to_wire(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """Return the tools as an endpoint wants them."""
    return [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
        for t in tools
    ]


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}
    if message.role != "assistant":
        return {"role": message.role, "content": message.content}
    thinking = f"<thinking>{message.thinking}</thinking>\n" if message.thinking else ""
    content = thinking + message.content
    if not message.tool_calls:
        return {"role": "assistant", "content": content or NO_ANSWER}
    calls = [_call(call) for call in message.tool_calls]
    return {"role": "assistant", "content": content or None, "tool_calls": calls}


def _call(call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name or "unnamed", "arguments": _json(call.arguments)},
    }


def _json(arguments: str) -> str:
    # Endpoints parse the arguments of past calls and refuse the whole conversation over broken ones. The model
    # gets its own text back inside a valid object, beside the tool's message that it was broken.
    try:
        parsed = json.loads(arguments)
    except ValueError:
        parsed = None
    return arguments if isinstance(parsed, dict) else json.dumps({"not_json": arguments})


@dataclass
class _CallInPieces:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class Assembly:
    """One answer, growing with its deltas."""

    def __init__(self, on_delta: OnDelta) -> None:
        self._on_delta = on_delta
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[_CallInPieces] = []
        self._at: dict[int, _CallInPieces] = {}

    def add(self, delta: Any) -> None:
        """Take in one delta and pass its text on; what `on_delta` raises comes out."""
        if thinking := getattr(delta, "reasoning_content", None):
            self._thinking.append(thinking)
            self._on_delta("thinking", thinking)
        if text := delta.content:
            self._text.append(text)
            self._on_delta("text", text)
        for piece in delta.tool_calls or ():
            self._add_call(piece)

    def message(self) -> Message:
        """Return the message as far as it came."""
        calls = (ToolCall(id=c.id, name=c.name, arguments="".join(c.arguments) or "{}") for c in self._calls)
        return Message(
            role="assistant", content="".join(self._text), thinking="".join(self._thinking), tool_calls=tuple(calls)
        )

    def _add_call(self, piece: Any) -> None:
        call = self._slot(piece)
        if piece.id:
            call.id = piece.id
        function = piece.function
        # The name comes whole in the first piece; some endpoints repeat it in every one.
        if function.name and not call.name:
            call.name = function.name
            self._on_delta("tool_call", f"{function.name} ")
        if function.arguments:
            call.arguments.append(function.arguments)
            self._on_delta("tool_call", function.arguments)

    def _slot(self, piece: Any) -> _CallInPieces:
        index = piece.index or 0
        call = self._at.get(index)
        # Some endpoints give every call the index 0: another id under the same index is another call.
        if call is None or (piece.id and call.id and piece.id != call.id):
            call = self._at[index] = _CallInPieces()
            self._calls.append(call)
        return call
