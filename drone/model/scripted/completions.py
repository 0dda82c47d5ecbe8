"""A scripted reply in the format of OpenAI's chat completions: whole, or as the chunks of a stream."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from drone.model.scripted.script import Reply, ScriptedCall

MODEL_ID = "scripted"
CREATED = 1_700_000_000
"""A fixed time, so that the same script gives the same bytes."""
Count = Callable[[dict[str, Any]], int]
"""Returns the number of tokens of a request."""
_PIECE = re.compile(r"\s*\S{1,24}\s*|\s+")


def guessed_tokens(body: dict[str, Any]) -> int:
    """Four characters per token: good enough for simulated figures."""
    return len(json.dumps(body["messages"])) // 4


def completion(index: int, reply: Reply, body: dict[str, Any], count: Count = guessed_tokens) -> dict[str, Any]:
    """Return the whole answer as one document."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    if reply.tool_calls:
        message["tool_calls"] = [_call(index, at, call, call.text) for at, call in enumerate(reply.tool_calls)]
    document = _frame("chat.completion", [{"index": 0, "message": message, "finish_reason": _finish(reply)}])
    if reply.usage:
        document["usage"] = _usage(reply, body, count)
    return document


def chunks(index: int, reply: Reply, body: dict[str, Any], count: Count = guessed_tokens) -> Iterator[dict[str, Any]]:
    """Yield the answer in pieces: role, thinking, text, calls, finish; usage last, if requested."""
    yield _delta({"role": "assistant", "content": ""})
    for piece in _PIECE.findall(reply.thinking):
        yield _delta({"reasoning_content": piece})
    for piece in _PIECE.findall(reply.text):
        yield _delta({"content": piece})
    for at, call in enumerate(reply.tool_calls):
        yield _delta({"tool_calls": [{"index": at, **_call(index, at, call, "")}]})
        for start in range(0, len(call.text), 32):
            arguments = {"arguments": call.text[start : start + 32]}
            yield _delta({"tool_calls": [{"index": at, "function": arguments}]})
    yield _delta({}, _finish(reply))
    if reply.usage and (body.get("stream_options") or {}).get("include_usage"):
        yield {**_frame("chat.completion.chunk", []), "usage": _usage(reply, body, count)}


def error_body(error: str | dict[str, Any], code: str | None = None) -> dict[str, Any]:
    """Return an error in the format of these endpoints."""
    if isinstance(error, dict):
        return {"error": error}
    return {"error": {"message": error, "type": code or "scripted_error", "param": None, "code": code}}


def too_long(tokens: int, window: int) -> dict[str, Any]:
    """Return the refusal of a request that does not fit the window."""
    what = (
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens."
    )
    return error_body(what, "context_length_exceeded")


def _delta(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return _frame("chat.completion.chunk", [{"index": 0, "delta": delta, "finish_reason": finish}])


def _frame(kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": "chatcmpl-scripted", "object": kind, "created": CREATED, "model": MODEL_ID, "choices": choices}


def _call(index: int, at: int, call: ScriptedCall, arguments: str) -> dict[str, Any]:
    name = call.id if call.id is not None else f"call_{index}_{at}"
    return {"id": name, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _finish(reply: Reply) -> str:
    return reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")


def _usage(reply: Reply, body: dict[str, Any], count: Count) -> dict[str, Any]:
    given = reply.usage
    assert given is not None
    said = len(reply.text) + len(reply.thinking) + sum(len(call.text) for call in reply.tool_calls)
    asked = given.input_tokens if given.input_tokens is not None else count(body)
    answered = given.output_tokens if given.output_tokens is not None else said // 4 + 1
    return {
        "prompt_tokens": asked,
        "completion_tokens": answered,
        "total_tokens": asked + answered,
        "prompt_tokens_details": {"cached_tokens": given.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": given.thinking_tokens},
    }
