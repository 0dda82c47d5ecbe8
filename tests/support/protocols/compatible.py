"""Endpoints that speak chat completions with differences of their own: DeepSeek, Mistral and vLLM.

Written from "Thinking mode" and "Error codes" (https://api-docs.deepseek.com/guides/thinking_mode,
https://api-docs.deepseek.com/quick_start/error_codes), "Chat completion" and "Reasoning"
(https://docs.mistral.ai/api/endpoint/chat, https://docs.mistral.ai/capabilities/reasoning), and vLLM's "Reasoning
outputs" (https://docs.vllm.ai/en/latest/features/reasoning_outputs.html) with its `ErrorResponse`.
"""

from __future__ import annotations

from typing import Any

from drone.model.errors import ErrorClass
from tests.support.endpoints import Doc, Said, halves, refused, sent_in_pieces
from tests.support.protocols import openai_chat as chat
from tests.support.protocols.spoken import Answer, Counted, Refusal, Spoken, broken_by, sse

_E = ErrorClass


def deepseek_usage(counted: Counted) -> Doc:
    return {
        **chat.usage_of(counted),
        "prompt_cache_hit_tokens": counted.read,
        "prompt_cache_miss_tokens": counted.asked - counted.read,
    }


def deepseek_answer(said: Answer) -> Said:
    """The usage is part of the last chunk with a choice."""
    finish = "tool_calls" if said.calls else "stop"
    used = deepseek_usage(said.usage) if said.usage else None
    chunks = [chat.piece({"role": "assistant", "content": None, "reasoning_content": ""})]
    chunks += map(chat.piece, chat.deltas_of(said, "reasoning_content"))
    return sent_in_pieces(sse(*chunks, chat.piece({"content": ""}, finish, usage=used), done=True))


def mistral_thought(text: str) -> Doc:
    return {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]}


def mistral_answer(said: Answer) -> Said:
    """Thinking comes as parts of the content, and every call whole."""
    deltas = [mistral_thought(half) for half in halves(said.thinking) if half]
    deltas += [{"content": half} for half in halves(said.text) if half]
    calls = [
        {"id": c.id, "index": n, "function": {"name": c.name, "arguments": c.json}} for n, c in enumerate(said.calls)
    ]
    last = chat.piece({"content": "", **({"tool_calls": calls} if calls else {})}, "tool_calls" if calls else "stop")
    if said.usage:
        last["usage"] = chat.usage_of(said.usage)
    chunks = [chat.piece({"role": "assistant", "content": ""}), *map(chat.piece, deltas), last]
    return sent_in_pieces(sse(*chunks, done=True))


def mistral_error(status: int, message: Any, kind: str, code: str) -> Said:
    return refused(status, {"object": "error", "message": message, "type": kind, "param": None, "code": code})


def vllm_answer(said: Answer, field: str = "reasoning") -> Said:
    """Thinking is in `reasoning`, which older versions named `reasoning_content`."""
    finish = "tool_calls" if said.calls else "stop"
    used = chat.usage_of(said.usage) if said.usage else None
    return chat.stream(*chat.deltas_of(said, field), finish=finish, usage=used)


def vllm_error(status: int, message: str, kind: str) -> Said:
    return refused(status, {"error": {"message": message, "type": kind, "param": None, "code": status}})


_TOO_LONG = "This model's maximum context length is 32768 tokens. However, you requested 40000 tokens."
_VALIDATION = {"detail": [{"type": "extra_forbidden", "loc": ["body", "x"], "msg": "Extra inputs are not permitted"}]}

DEEPSEEK = Spoken(
    name="deepseek",
    model="deepseek/deepseek-v3.2",
    spare=1,
    path="",
    answer=deepseek_answer,
    parts=chat.parts,
    prefix=chat.prefix,
    refusals=(
        Refusal(chat.error(401, "Authentication Fails (no such user)", "authentication_error"), _E.AUTH),
        Refusal(chat.error(402, "Insufficient Balance", "unknown_error"), _E.BILLING),
        Refusal(chat.error(422, "Invalid parameters", "invalid_request_error"), _E.FORMAT),
    ),
    breaks=(),
)

MISTRAL = Spoken(
    name="mistral",
    model="mistral/magistral-medium-latest",
    native=False,
    spare=1,
    answer=mistral_answer,
    parts=chat.parts,
    prefix=chat.prefix,
    refusals=(
        Refusal(mistral_error(400, "Invalid model: x", "invalid_model", "1500"), _E.MODEL_NOT_FOUND),
        Refusal(refused(401, {"detail": "Unauthorized"}), _E.AUTH),
        Refusal(mistral_error(422, _VALIDATION, "invalid_request_error", "422"), _E.FORMAT),
        Refusal(
            mistral_error(429, "Service tier capacity exceeded", "service_tier_capacity_exceeded", "3505"),
            _E.RATE_LIMIT,
        ),
    ),
    breaks=(),
)

_HALF = vllm_answer(Answer("Let me look at it."))

VLLM = Spoken(
    name="vllm",
    model="hosted_vllm/Qwen/Qwen3-32B",
    native=False,
    spare=2,
    answer=vllm_answer,
    parts=chat.parts,
    prefix=chat.prefix,
    refusals=(
        Refusal(vllm_error(400, _TOO_LONG, "BadRequestError"), _E.CONTEXT_OVERFLOW),
        Refusal(refused(401, {"error": "Unauthorized"}), _E.AUTH),
        Refusal(vllm_error(404, "The model `x` does not exist.", "NotFoundError"), _E.MODEL_NOT_FOUND),
    ),
    breaks=(
        Refusal(
            broken_by(
                _HALF,
                2,
                *sse({"error": {"message": "CUDA error", "type": "InternalServerError", "code": 500}}, done=True),
            ),
            _E.SERVER,
        ),
    ),
)
