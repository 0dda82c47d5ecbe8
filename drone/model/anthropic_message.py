"""A whole message of Anthropic's, which some gateways send in place of a stream, as the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from drone.model.errors import AnswerInterrupted

Document = dict[str, Any]
_FRAME = {"id", "type", "role", "model"}
_EMPTY: dict[str, Document] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}
"""How blocks begin whose content follows in deltas; others begin with all that they have."""


def as_events(document: Document) -> Iterator[Document]:
    """Yield a document as litellm is to read it: as it is, unless it is a whole message.

    Raises AnswerInterrupted for a message that cannot be understood.
    """
    if document.get("type") != "message":
        yield document
        return
    blocks, usage = document.get("content"), document.get("usage")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise AnswerInterrupted("it has a content that is no list of blocks")
    used = {"usage": usage} if isinstance(usage, dict) else {}
    frame = {name: value for name, value in document.items() if name in _FRAME}
    yield {"type": "message_start", "message": {**frame, **used, "content": [], "stop_reason": None}}
    for index, block in enumerate(blocks):
        start = {**block, **_EMPTY.get(str(block.get("type")), {})}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in _deltas(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {name: document.get(name) for name in ("stop_reason", "stop_sequence")}
    yield {"type": "message_delta", "delta": delta, **used}
    yield {"type": "message_stop"}


def _deltas(block: Document) -> Iterator[Document]:
    match block.get("type"):
        case "text":
            yield {"type": "text_delta", "text": _text(block, "text")}
        case "thinking":
            yield {"type": "thinking_delta", "thinking": _text(block, "thinking")}
            if block.get("signature"):
                yield {"type": "signature_delta", "signature": _text(block, "signature")}
        case "tool_use":
            yield {"type": "input_json_delta", "partial_json": json.dumps(block.get("input") or {})}


def _text(block: Document, name: str) -> str:
    text = block.get(name) or ""
    if not isinstance(text, str):
        raise AnswerInterrupted("it has a block whose content is no text")
    return text
