"""Assembles a streamed answer from its pieces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from drone.agent.answer_checks import parsed_arguments
from drone.agent.values import DeltaKind, OnDelta
from drone.model.model_families import Thinking
from drone.model.surrogates import whole, whole_json
from shared.messages import Message, ToolCall

LONGEST = 1_000_000
"""Maximum characters of an answer; no model produces that many tokens at once, so a longer one is an endpoint fault."""
KEPT = 20_000
"""Characters kept of each text in a longer answer: enough to identify it."""

_TEXTS = ("thinking", "text", "summary", "data", "signature")
"""Fields of a thinking block that arrive in pieces; the others arrive whole."""


@dataclass
class _CallInPieces:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def call(self, limit: int | None = None) -> ToolCall:
        arguments = whole_json("".join(self.arguments)[:limit])
        return ToolCall(id=whole(self.id), name=whole(self.name), arguments=arguments or "{}")


class Assembly:
    """One answer, built from its deltas. `thinking` is the form in which the model signs its thinking, if any."""

    def __init__(self, on_delta: OnDelta, thinking: Thinking = "tags") -> None:
        self._on_delta = on_delta
        self._form = thinking
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._blocks: list[dict[str, Any]] = []
        self._calls: list[_CallInPieces] = []
        self._at: dict[int, _CallInPieces] = {}
        self._length = 0

    @property
    def too_long(self) -> bool:
        return self._length > LONGEST

    def add(self, delta: Any) -> None:
        """Add one delta and pass its text to `on_delta`, whose exceptions propagate."""
        if thinking := getattr(delta, "reasoning_content", None):
            self._thinking.append(thinking)
            self._show("thinking", thinking)
        if self._form == "blocks":  # other forms of signatures are not sent back
            self.sign(getattr(delta, "thinking_blocks", None) or ())
        if text := delta.content:
            self._text.append(text)
            self._show("text", text)
        for piece in delta.tool_calls or ():
            self._add_call(piece)

    def sign(self, pieces: Iterable[Mapping[str, Any]]) -> None:
        """Add pieces of thinking blocks, in the form in which they are sent back."""
        for piece in pieces:
            self._add_block(piece)

    def message(self) -> Message:
        """Return the message received so far; if it is too long, the beginning of each text."""
        limit = KEPT if self.too_long else None
        return Message(
            role="assistant",
            content=_joined(self._text, limit),
            thinking=_joined(self._thinking, limit),
            thinking_blocks=() if self.too_long else tuple(self._blocks),
            tool_calls=tuple(call.call(limit) for call in self._calls),
        )

    def _show(self, kind: DeltaKind, text: str) -> None:
        self._length += len(text)
        self._on_delta(kind, whole(text))

    def _add_block(self, piece: Mapping[str, Any]) -> None:
        """Add a piece to the block that it continues, or as a new block."""
        last = self._blocks[-1] if self._blocks else {}
        if not _goes_on(last, piece):
            self._blocks.append({key: value for key, value in piece.items() if value is not None})
            return
        for key, value in piece.items():
            if key in _TEXTS and value:
                last[key] = last.get(key, "") + value
            elif value is not None:
                last.setdefault(key, value)

    def _add_call(self, piece: Any) -> None:
        call = self._slot(piece)
        if piece.id:
            call.id = piece.id
        function = piece.function
        # The first piece contains the whole name; some endpoints repeat it in every piece.
        if function.name and not call.name:
            call.name = function.name
            self._show("tool_call", f"{function.name} ")
        if function.arguments:
            call.arguments.append(function.arguments)
            self._show("tool_call", function.arguments)

    def _slot(self, piece: Any) -> _CallInPieces:
        index = piece.index or 0
        call = self._at.get(index)
        if call is None or _is_another(call, piece):
            call = self._at[index] = _CallInPieces()
            self._calls.append(call)
        return call


def _is_another(call: _CallInPieces, piece: Any) -> bool:
    """Whether a piece starts another call despite having the same index; some endpoints use one index for all calls."""
    if piece.id and call.id:
        return bool(piece.id != call.id)
    # Without ids, a repeated name marks a new call, unless the current call is still incomplete.
    if not (piece.function.name and call.arguments):
        return False
    return isinstance(parsed_arguments(call.call()), dict)


def _goes_on(last: Mapping[str, Any], piece: Mapping[str, Any]) -> bool:
    """Whether a piece belongs to the previous block: same type and index, and not signed yet."""
    if not last or piece.get("type") != last.get("type") or piece.get("index") != last.get("index"):
        return False
    whole = last.get("signature") or last["type"] in {"redacted_thinking", "reasoning.encrypted"}
    return not whole


def _joined(pieces: Iterable[str], limit: int | None) -> str:
    return whole("".join(pieces)[:limit])
