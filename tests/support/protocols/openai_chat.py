"""OpenAI's chat completions, and the shapes that compatible endpoints share with it.

Written from "Chat: streaming events" (https://platform.openai.com/docs/api-reference/chat-streaming), "Error codes"
(https://platform.openai.com/docs/guides/error-codes) and the types in openai-python, `openai/types/chat`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from drone.model.errors import ErrorClass
from tests.support.endpoints import Doc, Said, halves, refused, sent_in_pieces
from tests.support.protocols.spoken import Answer, Counted, Part, Refusal, Spoken, broken_by, sse


def piece(delta: Doc, finish: str | None = None, **more: Any) -> Doc:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {
        "id": "chatcmpl-9xQb",
        "object": "chat.completion.chunk",
        "created": 1764000000,
        "model": "gpt-5.1-2025-11-13",
    }
    return {**head, "system_fingerprint": "fp_44709d6fcb", "choices": [choice], "usage": None, **more}


def usage_of(counted: Counted) -> Doc:
    return {
        "prompt_tokens": counted.asked,
        "completion_tokens": counted.answered,
        "total_tokens": counted.asked + counted.answered,
        "prompt_tokens_details": {"cached_tokens": counted.read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": counted.thought, "audio_tokens": 0},
    }


def call_head(index: int, call_id: str, name: str, arguments: str = "") -> Doc:
    function = {"name": name, "arguments": arguments}
    return {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}


def call_more(index: int, arguments: str) -> Doc:
    return {"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}


def stream(*deltas: Doc, finish: str = "stop", usage: Doc | None = None, done: bool = True) -> Said:
    """An answer of these deltas; the usage is in a chunk of its own, without choices."""
    chunks = [piece({"role": "assistant", "content": "", "refusal": None}), *map(piece, deltas), piece({}, finish)]
    if usage is not None:
        chunks.append({**piece({}), "choices": [], "usage": usage})
    return sent_in_pieces(sse(*chunks, done=done), x_request_id="req_8f2c")


def deltas_of(said: Answer, thinking: str = "") -> list[Doc]:
    """The answer's deltas; the pieces of its calls alternate. `thinking` names the field that has the thinking."""
    found: list[Doc] = [{thinking: half} for half in halves(said.thinking) if half and thinking]
    found += [{"content": half} for half in halves(said.text) if half]
    found += [call_head(index, call.id, call.name) for index, call in enumerate(said.calls)]
    for half in (0, 1):
        found += [call_more(index, call.halves[half]) for index, call in enumerate(said.calls)]
    return found


def answer(said: Answer) -> Said:
    finish = "tool_calls" if said.calls else "stop"
    return stream(*deltas_of(said), finish=finish, usage=usage_of(said.usage) if said.usage else None)


def parts(body: Doc, thinking: str = "reasoning_content") -> list[Part]:
    first = next(at for at, message in enumerate(body["messages"]) if message["role"] == "user")
    return [part for message in body["messages"][first + 1 :] for part in _parts(message, thinking)]


def _parts(message: Doc, thinking: str) -> list[Part]:
    if message["role"] == "tool":
        return [Part("result", _text(message["content"]), message["tool_call_id"], native=message)]
    found = [Part("thought", message[thinking], native=message)] if message.get(thinking) else []
    text = _text(message.get("content"))
    found += [Part("text", text, native=message)] if text else []
    return found + [_call(call) for call in message.get("tool_calls") or ()]


def _call(call: Doc) -> Part:
    arguments = call["function"]["arguments"]
    value = arguments if isinstance(arguments, dict) else _loaded(arguments)
    return Part("call", value.get("text", ""), call.get("id", ""), call["function"]["name"], call)


def _loaded(text: str) -> Mapping[str, Any]:
    value: Mapping[str, Any] = json.loads(text)
    return value


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(each.get("text", "") for each in content)
    return content or ""


def prefix(body: Doc) -> Any:
    return [[message for message in body["messages"] if message["role"] == "system"], body["tools"]]


def error(status: int, message: str, kind: str, code: Any = None, **headers: str) -> Said:
    return refused(status, {"error": {"message": message, "type": kind, "param": None, "code": code}}, **headers)


def error_event(message: str, kind: str, code: Any = None) -> bytes:
    return sse({"error": {"message": message, "type": kind, "param": None, "code": code}})[0]


_E = ErrorClass
_HALF = answer(Answer("Let me look at it."))
_TOO_LONG = "This model's maximum context length is 272000 tokens. However, your messages resulted in 300123 tokens."
_QUOTA = "You exceeded your current quota, please check your plan and billing details."
_FLAGGED = "Invalid prompt: your prompt was flagged as potentially violating our usage policy."


def refusals(said: Callable[..., Said] = error) -> tuple[Refusal, ...]:
    """What OpenAI answers to both of its APIs."""
    bad = "invalid_request_error"
    return (
        Refusal(said(400, _TOO_LONG, bad, "context_length_exceeded"), _E.CONTEXT_OVERFLOW),
        Refusal(said(400, _FLAGGED, bad, "invalid_prompt"), _E.CONTENT_BLOCKED),
        Refusal(said(401, "Incorrect API key provided: dummy-key.", bad, "invalid_api_key"), _E.AUTH),
        Refusal(said(429, _QUOTA, "insufficient_quota", "insufficient_quota"), _E.BILLING),
        Refusal(
            said(429, "Rate limit reached for gpt-5.1 in organization o on tokens per min (TPM)", "tokens",
                 "rate_limit_exceeded", retry_after_ms="1500"),
            _E.RATE_LIMIT,
            retry_after=1.5
        ),
        Refusal(said(503, "The engine is currently overloaded, please try again later", "server_error"), _E.OVERLOADED),
    )  # fmt: skip


OPENAI_CHAT = Spoken(
    name="openai-chat",
    model="openai/gpt-5.1",
    thinks=False,
    spare=2,
    answer=answer,
    parts=parts,
    prefix=prefix,
    refusals=refusals(),
    breaks=(
        Refusal(
            broken_by(_HALF, 2, error_event("The server had an error while processing your request", "server_error")),
            _E.SERVER,
        ),
        Refusal(broken_by(_HALF, 2, error_event("Rate limit reached", "tokens", "rate_limit_exceeded")), _E.RATE_LIMIT),
    ),
)
