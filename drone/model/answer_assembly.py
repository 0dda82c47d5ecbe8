"""Assembles a streamed answer from its pieces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from drone.agent.answer_checks import parsed_arguments
from drone.agent.values import DeltaKind, OnDelta
from drone.model.model_families import SIGNATURE, SIGNED_ID, Thinking
from drone.model.surrogates import whole, whole_json
from drone.model.thought_tags import ThoughtTags
from shared.clock import Clock
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

    def __init__(self, on_delta: OnDelta, clock: Clock, thinking: Thinking = "tags") -> None:
        self._on_delta = on_delta
        self._clock = clock
        self._thought_from: float | None = None
        self._thought_until: float | None = None
        self._form = thinking
        self._said = ThoughtTags()
        self._thinking: list[str] = []
        self._blocks: list[dict[str, Any]] = []
        self._calls: list[_CallInPieces] = []
        self._at: dict[int, _CallInPieces] = {}
        self._length = 0

    @property
    def too_long(self) -> bool:
        return self._length > LONGEST

    @property
    def thinking_ms(self) -> int:
        """From the first to the last piece of thinking."""
        return round(((self._thought_until or 0.0) - (self._thought_from or 0.0)) * 1000)

    def add(self, delta: Any) -> None:
        """Add one delta and pass its text to `on_delta`, whose exceptions propagate."""
        if thinking := getattr(delta, "reasoning_content", None):
            self._thinking.append(thinking)
            self._show("thinking", thinking)
        self._sign(delta)
        if text := delta.content:
            for kind, said in self._said.feed(text):
                self._show(kind, said)
        for piece in delta.tool_calls or ():
            self._add_call(piece)

    def _sign(self, delta: Any) -> None:
        # Signatures of other forms are not sent back.
        if self._form == "blocks":
            self.sign(getattr(delta, "thinking_blocks", None) or ())
        elif self._form == "items":
            self._blocks += getattr(delta, "reasoning_items", None) or ()
        elif self._form == "signatures":
            fields = getattr(delta, "provider_specific_fields", None) or {}
            of_calls = {_signature(piece) for piece in delta.tool_calls or ()}
            for signature in fields.get("thought_signatures") or ():
                if signature not in of_calls:
                    self._blocks.append({"type": SIGNATURE, "signature": signature})

    def sign(self, pieces: Iterable[Mapping[str, Any]]) -> None:
        """Add pieces of thinking blocks, in the form in which they are sent back."""
        for piece in pieces:
            self._add_block(piece)

    def message(self) -> Message:
        """Return the message received by the end; if it is too long, the beginning of each text."""
        for kind, said in self._said.end():
            self._show(kind, said)
        limit = KEPT if self.too_long else None
        return Message(
            role="assistant",
            content=_joined([self._said.text], limit),
            thinking=_joined(self._thoughts(), limit),
            thinking_blocks=() if self.too_long else tuple(self._blocks),
            tool_calls=tuple(call.call(limit) for call in self._calls),
        )

    def _thoughts(self) -> Iterable[str]:
        """The pieces of thinking; of items, the paragraphs, whose ends the pieces do not show. Last, those in tags."""
        thinking = self._thinking
        if self._form == "items" and self._blocks:
            thinking = ["\n\n".join(part["text"] for block in self._blocks for part in block.get("summary") or ())]
        tagged = self._said.thoughts
        return [*thinking, "\n\n" if thinking and tagged else "", tagged]

    def _show(self, kind: DeltaKind, text: str) -> None:
        if kind == "thinking":
            self._thought_until = self._clock.monotonic()
            if self._thought_from is None:
                self._thought_from = self._thought_until
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
        if self._form == "signatures" and (signature := _signature(piece)):
            # Kept apart: as a part of the id, it would be in every step, and refused by any other provider.
            call.id = call.id.partition(SIGNED_ID)[0]
            self._blocks.append({"type": SIGNATURE, "call": self._calls.index(call), "signature": signature})
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


def _signature(piece: Any) -> str:
    """Gemini's signature of a call; '' if it has none."""
    fields = getattr(piece, "provider_specific_fields", None) or {}
    return str(fields.get(SIGNATURE) or "") or (piece.id or "").partition(SIGNED_ID)[2]


def _goes_on(last: Mapping[str, Any], piece: Mapping[str, Any]) -> bool:
    """Whether a piece belongs to the previous block: same type and index, and not signed yet."""
    if not last or piece.get("type") != last.get("type") or piece.get("index") != last.get("index"):
        return False
    whole = last.get("signature") or last["type"] in {"redacted_thinking", "reasoning.encrypted"}
    return not whole


def _joined(pieces: Iterable[str], limit: int | None) -> str:
    return whole("".join(pieces)[:limit])
