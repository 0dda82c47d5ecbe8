"""Anthropic's Messages API.

Written from "Streaming messages" (https://platform.claude.com/docs/build-with-claude/streaming), "Building with
extended thinking" (https://platform.claude.com/docs/build-with-claude/extended-thinking), "Prompt caching"
(https://platform.claude.com/docs/build-with-claude/prompt-caching) and "Claude API errors"
(https://platform.claude.com/docs/api/errors).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drone.model.errors import ErrorClass
from tests.support.endpoints import Doc, Said, anthropic_block, refused, sent_in_pieces
from tests.support.protocols.spoken import Answer, Counted, Part, Refusal, Spoken, broken_by, named_sse

PING = b'event: ping\ndata: {"type": "ping"}\n\n'


def thinking(text: str, signature: str) -> Doc:
    return {"type": "thinking", "thinking": text, "signature": signature}


def redacted(data: str) -> Doc:
    return {"type": "redacted_thinking", "data": data}


def tool_use(call_id: str, name: str, text: str) -> Doc:
    """A call whose arguments arrive as this text."""
    return {"type": "tool_use", "id": call_id, "name": name, "partial": text}


def stream(blocks: Sequence[Doc], stop: str = "end_turn", usage: Counted | None = None, **details: Any) -> Said:
    """An answer of these blocks; `details` are further fields of the last `message_delta`."""
    counted = usage or Counted()
    plain = counted.asked - counted.read - counted.written
    tokens = {
        "input_tokens": plain,
        "cache_creation_input_tokens": counted.written,
        "cache_read_input_tokens": counted.read,
    }
    message = {"id": "msg_01XFDUDYJgAACzvnptvVoYEL", "type": "message", "role": "assistant", "content": []}
    message |= {"model": "claude-sonnet-4-5-20250929", "stop_reason": None, "stop_sequence": None}
    if usage is not None:
        message["usage"] = {**tokens, "output_tokens": 1}
    delta = {"stop_reason": stop, "stop_sequence": None, **details}
    last: Doc = {"type": "message_delta", "delta": delta}
    if usage is not None:
        last["usage"] = {**tokens, "output_tokens": counted.answered}
    pieces = [*named_sse({"type": "message_start", "message": message}), PING]
    for index, block in enumerate(blocks):
        pieces += named_sse(*anthropic_block(index, block))
    return sent_in_pieces(
        [*pieces, *named_sse(last, {"type": "message_stop"})], request_id="req_011CSHoEeqs5C35K2UUqR7Fy"
    )


def answer(said: Answer) -> Said:
    blocks: list[Doc] = []
    if said.thinking or said.signature:
        blocks.append(thinking(said.thinking, said.signature))
    if said.text:
        blocks.append({"type": "text", "text": said.text})
    blocks += [tool_use(call.id, call.name, call.json) for call in said.calls]
    return stream(blocks, "tool_use" if said.calls else "end_turn", said.usage)


def parts(body: Doc) -> list[Part]:
    return [_part(block) for message in body["messages"][1:] for block in _blocks(message["content"])]


def _blocks(content: Any) -> list[Doc]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _part(block: Doc) -> Part:
    match block["type"]:
        case "thinking":
            return Part("thought", block["thinking"], native=block)
        case "redacted_thinking":
            return Part("thought", native=block)
        case "tool_use":
            return Part("call", block["input"].get("text", ""), block["id"], block["name"], block)
        case "tool_result":
            said = "".join(each["text"] for each in _blocks(block["content"]))
            return Part("result", said, block["tool_use_id"], native=block)
        case _:
            return Part("text", block["text"], native=block)


def prefix(body: Doc) -> Any:
    return [body["system"], body["tools"]]


def error(status: int, kind: str, message: str, **headers: str) -> Said:
    document = {
        "type": "error",
        "error": {"type": kind, "message": message},
        "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy",
    }
    return refused(status, document, **headers)


def error_event(kind: str, message: str) -> bytes:
    return named_sse({"type": "error", "error": {"type": kind, "message": message}})[0]


_E = ErrorClass
_HALF = answer(Answer("Let me look at it.", "Where is it?", "c2lnbmVk"))

ANTHROPIC = Spoken(
    name="anthropic",
    model="anthropic/claude-sonnet-4-5",
    path="",
    answer=answer,
    parts=parts,
    prefix=prefix,
    writes=True,
    counts_thought=False,
    spare=1,
    refusals=(
        Refusal(error(402, "billing_error", "There is a problem with your payment information"), _E.BILLING),
        Refusal(
            error(429, "rate_limit_error", "This request would exceed your rate limit", retry_after="7"),
            _E.RATE_LIMIT,
            retry_after=7,
        ),
        Refusal(error(500, "api_error", "Internal server error"), _E.SERVER),
        Refusal(error(504, "timeout_error", "The request timed out"), _E.TIMEOUT),
    ),
    breaks=(
        Refusal(broken_by(_HALF, 5, error_event("overloaded_error", "Overloaded")), _E.OVERLOADED),
        Refusal(broken_by(_HALF, 5, error_event("api_error", "Internal server error")), _E.SERVER),
        Refusal(
            broken_by(_HALF, 5, error_event("rate_limit_error", "This request would exceed your rate limit")),
            _E.RATE_LIMIT,
        ),
    ),
)
