"""Amazon Bedrock's ConverseStream.

Written from "ConverseStream" and "ConverseStreamOutput"
(https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html), "Prompt caching"
(https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html), and botocore's model of `bedrock-runtime`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import Any

from drone.model.errors import ErrorClass
from tests.support.endpoints import Doc, Said, halves, sent_in_pieces
from tests.support.protocols.event_stream import event, exception
from tests.support.protocols.spoken import Answer, Counted, Part, Refusal, Spoken, broken_by

KIND = "application/vnd.amazon.eventstream"


def thinking(text: str, signature: str) -> Doc:
    return {"reasoningContent": {"text": text, "signature": signature}}


def redacted(data: bytes) -> Doc:
    return {"reasoningContent": {"redactedContent": base64.b64encode(data).decode()}}


def tool_use(call_id: str, name: str, text: str) -> Doc:
    return {"toolUse": {"toolUseId": call_id, "name": name, "input": text}}


def usage_of(counted: Counted) -> Doc:
    return {
        "inputTokens": counted.asked - counted.read - counted.written,
        "outputTokens": counted.answered,
        "totalTokens": counted.asked + counted.answered,
        "cacheReadInputTokens": counted.read,
        "cacheWriteInputTokens": counted.written,
    }


def stream(blocks: Sequence[Doc], stop: str = "end_turn", usage: Counted | None = None) -> Said:
    """An answer of these blocks."""
    frames = [event("messageStart", {"role": "assistant"})]
    for index, block in enumerate(blocks):
        frames += [event(kind, {"contentBlockIndex": index, **document}) for kind, document in _events(block)]
        frames.append(event("contentBlockStop", {"contentBlockIndex": index}))
    frames.append(event("messageStop", {"stopReason": stop}))
    counted = {"usage": usage_of(usage)} if usage else {}
    frames.append(event("metadata", {**counted, "metrics": {"latencyMs": 1551}}))
    return sent_in_pieces(frames, KIND, x_amzn_RequestId="1a2b")


def _events(block: Doc) -> Iterator[tuple[str, Doc]]:
    if "toolUse" in block:
        use = block["toolUse"]
        yield "contentBlockStart", {"start": {"toolUse": {"toolUseId": use["toolUseId"], "name": use["name"]}}}
        for half in halves(use["input"]):
            yield "contentBlockDelta", {"delta": {"toolUse": {"input": half}}}
        return
    thought = block.get("reasoningContent", {})
    texts = halves(thought.get("text", "")) if thought else halves(block["text"])
    for half in filter(None, texts):
        yield "contentBlockDelta", {"delta": {"reasoningContent": {"text": half}} if thought else {"text": half}}
    for name in ("signature", "redactedContent"):
        if thought.get(name):
            yield "contentBlockDelta", {"delta": {"reasoningContent": {name: thought[name]}}}


def answer(said: Answer) -> Said:
    blocks: list[Doc] = []
    if said.thinking or said.signature:
        blocks.append(thinking(said.thinking, said.signature))
    if said.text:
        blocks.append({"text": said.text})
    blocks += [tool_use(call.id, call.name, call.json) for call in said.calls]
    return stream(blocks, "tool_use" if said.calls else "end_turn", said.usage)


def parts(body: Doc) -> list[Part]:
    blocks = (block for message in body["messages"][1:] for block in message["content"])
    return [_part(block) for block in blocks if "cachePoint" not in block]


def _part(block: Doc) -> Part:
    if thought := block.get("reasoningContent"):
        return Part("thought", thought.get("reasoningText", {}).get("text", ""), native=block)
    if use := block.get("toolUse"):
        return Part("call", use["input"].get("text", ""), use["toolUseId"], use["name"], block)
    if result := block.get("toolResult"):
        said = "".join(each["text"] for each in result["content"])
        return Part("result", said, result["toolUseId"], native=block)
    return Part("text", block["text"], native=block)


def prefix(body: Doc) -> Any:
    return [body["system"], body["toolConfig"]]


def error(status: int, kind: str, message: str) -> Said:
    return Said({"message": message}, status, {"x-amzn-ErrorType": kind, "x-amzn-RequestId": "1a2b"})


_E = ErrorClass
_HALF = answer(Answer("Let me look at it.", "Where is it?", "c2lnbmVk"))
_RATE = "Too many requests, please wait before trying again."
_MARKETPLACE = "You don't have access to the model with the specified model ID."

BEDROCK = Spoken(
    name="bedrock",
    model="bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    priced_as="us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    path="",
    answer=answer,
    parts=parts,
    prefix=prefix,
    writes=True,
    counts_thought=False,
    spare=1,
    params={"aws_region_name": "us-east-1"},
    refusals=(
        Refusal(error(400, "ValidationException", "The value at toolConfig is invalid."), _E.FORMAT),
        Refusal(error(400, "ValidationException", "Input is too long for requested model."), _E.CONTEXT_OVERFLOW),
        Refusal(error(400, "ValidationException", "The provided model identifier is invalid."), _E.MODEL_NOT_FOUND),
        Refusal(error(403, "AccessDeniedException", _MARKETPLACE), _E.AUTH_PERMANENT),
        Refusal(
            error(403, "UnrecognizedClientException", "The security token included in the request is invalid."), _E.AUTH
        ),
        Refusal(error(408, "ModelTimeoutException", "The model took too long"), _E.TIMEOUT),
        Refusal(error(424, "ModelErrorException", "The model returned an error"), _E.SERVER),
        Refusal(error(429, "ThrottlingException", _RATE), _E.RATE_LIMIT),
        # litellm reports it as a 503: to be repeated either way.
        Refusal(error(500, "InternalServerException", "An internal server error occurred"), _E.OVERLOADED),
    ),
    breaks=(
        Refusal(broken_by(_HALF, 3, exception("throttlingException", _RATE)), _E.RATE_LIMIT),
        Refusal(broken_by(_HALF, 3, exception("internalServerException", "Internal error")), _E.OVERLOADED),
        Refusal(broken_by(_HALF, 3, exception("modelStreamErrorException", "The model failed")), _E.SERVER),
    ),
)


def markers(body: Doc) -> Any:
    """How many cache points stand in the system prompt, the tools and each message."""
    tools = sum("cachePoint" in each for each in body["toolConfig"]["tools"])
    said = [sum("cachePoint" in block for block in message["content"]) for message in body["messages"]]
    return sum("cachePoint" in each for each in body["system"]), tools, said
