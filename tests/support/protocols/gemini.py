"""Gemini's streamGenerateContent.

Written from "Generating content" (https://ai.google.dev/api/generate-content), "Thought signatures"
(https://ai.google.dev/gemini-api/docs/thought-signatures), "Function calling"
(https://ai.google.dev/gemini-api/docs/function-calling) and "API errors"
(https://ai.google.dev/gemini-api/docs/generate-content/api-errors).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drone.model.errors import ErrorClass
from tests.support.endpoints import Doc, Said, halves, refused, sent_in_pieces
from tests.support.protocols.spoken import Answer, Counted, Part, Refusal, Spoken, broken_by, sse


def usage_of(counted: Counted) -> Doc:
    return {
        "promptTokenCount": counted.asked,
        "cachedContentTokenCount": counted.read,
        "candidatesTokenCount": counted.answered - counted.thought,
        "thoughtsTokenCount": counted.thought,
        "totalTokenCount": counted.asked + counted.answered,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": counted.asked}],
    }


def function_call(name: str, args: Doc | None, call_id: str = "", signature: str = "") -> Doc:
    call = {"name": name, **({} if args is None else {"args": args}), **({"id": call_id} if call_id else {})}
    return {"functionCall": call, **({"thoughtSignature": signature} if signature else {})}


def chunk(parts: Sequence[Doc] | None, finish: str = "", usage: Doc | None = None, **more: Any) -> Doc:
    candidate: Doc = {"index": 0}
    if parts is not None:
        candidate["content"] = {"parts": list(parts), "role": "model"}
    if finish:
        candidate["finishReason"] = finish
    counted = {"usageMetadata": usage} if usage is not None else {}
    return {"candidates": [candidate], **counted, "modelVersion": "gemini-3.5-flash", "responseId": "kM6saP", **more}


def stream(*contents: Sequence[Doc], finish: str = "STOP", usage: Counted | None = None) -> Said:
    """An answer with these parts in each chunk; the last chunk has no text and ends it."""
    used = usage_of(usage) if usage else None
    chunks = [chunk(parts, usage=used) for parts in contents]
    return sent_in_pieces(sse(*chunks, chunk([{"text": ""}], finish, used)))


def answer(said: Answer) -> Said:
    """Calls come whole, and the first part after the thinking has its signature."""
    contents: list[list[Doc]] = [[{"text": half, "thought": True}] for half in halves(said.thinking) if half]
    contents += [[{"text": half}] for half in halves(said.text) if half]
    signatures = [said.signature] + [""] * len(said.calls)
    calls = zip(said.calls, signatures, strict=False)
    contents += [[function_call(call.name, call.arguments, call.id, signature)] for call, signature in calls]
    return stream(*contents, usage=said.usage)


def parts(body: Doc) -> list[Part]:
    return [_part(part) for content in body["contents"][1:] for part in content["parts"]]


def _part(part: Doc) -> Part:
    call = part.get("functionCall") or part.get("function_call")
    if call:
        return Part("call", call.get("args", {}).get("text", ""), call.get("id", ""), call["name"], part)
    result = part.get("functionResponse") or part.get("function_response")
    if result:
        said = result["response"]
        return Part("result", str(said.get("content", said)), result.get("id", ""), result["name"], part)
    return Part("thought" if part.get("thought") else "text", part.get("text", ""), native=part)


def prefix(body: Doc) -> Any:
    return [body.get("systemInstruction") or body["system_instruction"], body["tools"]]


def error(code: int, status: str, message: str, *details: Doc) -> Said:
    return refused(code, {"error": {"code": code, "message": message, "status": status, "details": list(details)}})


def error_chunk(code: int, status: str, message: str) -> bytes:
    return sse({"error": {"code": code, "message": message, "status": status}})[0]


_E = ErrorClass
_HALF = answer(Answer("Let me look at it.", "Where is it?"))
_KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}
_LATER = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}
_RPM = "You exceeded your current quota, please check your plan and billing details. Please retry in 7.1s."
_TOO_LONG = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
_NO_FREE = "Gemini API free tier is not available in your country. Please enable billing on your project."

GEMINI = Spoken(
    name="gemini",
    model="gemini/gemini-3.5-flash",
    path="",
    answer=answer,
    parts=parts,
    prefix=prefix,
    refusals=(
        Refusal(error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", _KEY), _E.AUTH),
        Refusal(error(400, "INVALID_ARGUMENT", _TOO_LONG), _E.CONTEXT_OVERFLOW),
        Refusal(error(400, "FAILED_PRECONDITION", _NO_FREE), _E.BILLING),
        Refusal(error(404, "NOT_FOUND", "models/gemini-x is not found for API version v1beta"), _E.MODEL_NOT_FOUND),
        Refusal(error(429, "RESOURCE_EXHAUSTED", _RPM, _LATER), _E.RATE_LIMIT, retry_after=7),
        Refusal(error(503, "UNAVAILABLE", "The model is overloaded. Please try again later."), _E.OVERLOADED),
    ),
    breaks=(
        Refusal(broken_by(_HALF, 2, error_chunk(503, "UNAVAILABLE", "The model is overloaded.")), _E.OVERLOADED),
        Refusal(broken_by(_HALF, 2, error_chunk(500, "INTERNAL", "An internal error has occurred.")), _E.SERVER),
        Refusal(broken_by(_HALF, 2, error_chunk(429, "RESOURCE_EXHAUSTED", "Resource exhausted.")), _E.RATE_LIMIT),
    ),
)
