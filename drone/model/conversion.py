"""Converts the loop's messages and tools to chat completions, in the form that the model's family expects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from operator import is_
from typing import Any

from drone.agent.answer_checks import parsed_arguments
from drone.agent.values import ToolSpec
from drone.model.actions import in_text
from drone.model.model_families import SIGNATURE, Family, Thinking, own_blocks
from shared.messages import Message, ToolCall

Document = dict[str, Any]

NO_ANSWER = "(no answer)"
"""Replaces an empty assistant message: endpoints refuse those."""
MARKER = {"type": "ephemeral"}
LONGEST_BROKEN = 4_000
"""Characters sent back of arguments that are not a JSON object: enough to see what went wrong."""
_NAME = re.compile(r"[^a-zA-Z0-9_-]+")


class WireConversation:
    """Converts one conversation incrementally: messages of earlier questions are not converted again.

    The same messages give the same documents, so that the prefix of two questions differs only in its markers.
    """

    def __init__(self, family: Family, model: str, tools: Sequence[ToolSpec]) -> None:
        self._family = family
        self._model = model
        self._tools = tools
        self._names: dict[str, str] = {}
        self._messages: list[Message] = []
        self._documents: list[Document] = []

    def documents(self, messages: Sequence[Message]) -> list[Document]:
        """Return the messages in the endpoint's format; the caller may modify the documents, but not their values."""
        asked = list(messages[:])  # a slice copies the list at once, which is faster than iterating the sequence
        same = _same_from_the_start(self._messages, asked)
        self._documents[same:] = map(self._document, asked[same:])
        self._messages = asked
        found = list(map(dict, self._documents))
        if self._family.text:
            found = _taking_turns(found)
        return _marked(found) if self._family.markers else found

    def _document(self, message: Message) -> Document:
        if self._family.text:
            self._names.update((call.id, call.name) for call in message.tool_calls)
            message = in_text(message, self._tools, self._names)
        if message.role == "tool":
            return {"role": "tool", "tool_call_id": self._id(message.tool_call_id or ""), "content": message.content}
        if message.role != "assistant":
            return {"role": message.role, "content": message.content}
        thought = _thought(message, self._family, self._model)
        content = thought.pop("content", message.content)
        if not message.tool_calls:
            return {"role": "assistant", "content": content or NO_ANSWER, **thought}
        calls = [_call(call, self._id(call.id)) for call in message.tool_calls]
        if self._family.thinking == "signatures":
            for block in _signatures(message):
                if block.get("call") in range(len(calls)):
                    calls[block["call"]]["provider_specific_fields"] = {SIGNATURE: block["signature"]}
        return {"role": "assistant", "content": content or None, "tool_calls": calls, **thought}

    def _id(self, call_id: str) -> str:
        return self._family.ids.accepted(call_id) if self._family.ids else call_id


def _same_from_the_start(known: list[Message], asked: list[Message]) -> int:
    """Number of equal messages at the start. Usually all known messages, as identical objects: the fast path."""
    if len(known) <= len(asked) and all(map(is_, known, asked)):
        return len(known)
    pairs = enumerate(zip(known, asked, strict=False))
    return next((at for at, (old, new) in pairs if old is not new and old != new), min(len(known), len(asked)))


def tools_to_wire(tools: Iterable[ToolSpec]) -> list[Document]:
    """Return the tools in the endpoint's format."""
    return [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
        for t in tools
    ]


def _thought(message: Message, family: Family, model: str) -> Document:
    """A message's thinking in the form to send back: separate fields, or the start of the content (G-007)."""
    if family.thinking in _FIELDS and own_blocks(message, family, model):
        return {_FIELDS[family.thinking]: [dict(block) for block in message.thinking_blocks]}
    if family.thinking == "signatures":
        return _thought_parts(message)
    if family.thinking == "filled":
        # An empty value counts as missing; a blank is the shortest value that is accepted.
        return {"reasoning_content": message.thinking or " "}
    if not message.thinking:
        return {}
    if family.thinking == "reasoning":
        return {"reasoning_content": message.thinking}
    return {"content": f"<thinking>{message.thinking}</thinking>\n{message.content}"}


_FIELDS: Mapping[Thinking, str] = {
    "blocks": "thinking_blocks",
    "details": "reasoning_details",
    "items": "reasoning_items",
}
"""The field of a message in which thinking goes back as it came."""


def _thought_parts(message: Message) -> Document:
    """Thinking for Gemini, with the signature of the text."""
    thought: Document = {"reasoning_content": message.thinking} if message.thinking else {}
    signatures = [block["signature"] for block in _signatures(message) if "call" not in block]
    return {**thought, **({"provider_specific_fields": {"thought_signatures": signatures}} if signatures else {})}


def _signatures(message: Message) -> list[dict[str, Any]]:
    return [block for block in message.thinking_blocks if block.get("type") == SIGNATURE]


def _call(call: ToolCall, call_id: str) -> Document:
    # Endpoints check the names of past calls too, and refuse the whole conversation because of an invalid one.
    name = _NAME.sub("_", call.name)[:64] or "unnamed"
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": _json(call)}}


def _json(call: ToolCall) -> str:
    # Endpoints parse the arguments of past calls and refuse the whole conversation because of invalid ones. The model
    # gets its own text back inside a valid object, along with the tool's message that it was invalid.
    if isinstance(parsed_arguments(call), dict):
        return call.arguments
    text, more = call.arguments[:LONGEST_BROKEN], len(call.arguments) - LONGEST_BROKEN
    return json.dumps({"not_json": f"{text} [… {more} more characters]" if more > 0 else text})


def _taking_turns(documents: Iterable[Document]) -> list[Document]:
    """Join consecutive user messages: many templates of models without tools require alternating turns."""
    turns: list[Document] = []
    for document in documents:
        if turns and document["role"] == "user" == turns[-1]["role"]:
            turns[-1]["content"] += f"\n\n{document['content']}"
        else:
            turns.append(document)
    return turns


def _marked(documents: list[Document]) -> list[Document]:
    """Mark the cache breakpoints: after the system prompt, which follows the tools, after this question, and at the end
    of the previous question, which is cached by now. Endpoints accept at most four marks.
    """
    last = _last_said(documents, len(documents))
    before = _last_said(documents, _last_answer(documents))
    system = 0 if documents and documents[0]["role"] == "system" else None
    for at in {system, before, last} - {None}:
        assert at is not None
        if documents[at]["content"]:
            documents[at]["cache_control"] = dict(MARKER)
    return documents


def _last_answer(documents: list[Document]) -> int:
    return next((at for at in reversed(range(len(documents))) if documents[at]["role"] == "assistant"), 0)


def _last_said(documents: list[Document], end: int) -> int | None:
    """Index of the last message before `end` that is from a user or a tool."""
    return next((at for at in reversed(range(end)) if documents[at]["role"] in {"user", "tool"}), None)
