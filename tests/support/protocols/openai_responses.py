"""OpenAI's Responses API.

Written from "Responses: streaming events" (https://platform.openai.com/docs/api-reference/responses-streaming),
"Reasoning models" (https://platform.openai.com/docs/guides/reasoning, encrypted reasoning items) and the types in
openai-python, `openai/types/responses`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from drone.model.errors import ErrorClass
from tests.support.endpoints import Doc, Said, halves, sent_in_pieces
from tests.support.protocols import openai_chat
from tests.support.protocols.spoken import Answer, Counted, Part, Refusal, Spoken, broken_by, named_sse


def reasoning(summary: str, encrypted: str, item_id: str = "rs_68af4030baa48193b0b43b4c2a176a1a") -> Doc:
    said = [{"type": "summary_text", "text": summary}] if summary else []
    return {"id": item_id, "type": "reasoning", "summary": said, "encrypted_content": encrypted}


def message(text: str) -> Doc:
    content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
    return {"id": "msg_68af4033", "type": "message", "status": "completed", "role": "assistant", "content": content}


def refusal(text: str) -> Doc:
    return {**message(""), "content": [{"type": "refusal", "refusal": text}]}


def function_call(call_id: str, name: str, arguments: str) -> Doc:
    item = {"id": f"fc_{call_id}", "type": "function_call", "status": "completed", "call_id": call_id, "name": name}
    return {**item, "arguments": arguments}


def usage_of(counted: Counted) -> Doc:
    return {
        "input_tokens": counted.asked,
        "input_tokens_details": {"cached_tokens": counted.read, "cache_write_tokens": counted.written},
        "output_tokens": counted.answered,
        "output_tokens_details": {"reasoning_tokens": counted.thought},
        "total_tokens": counted.asked + counted.answered,
    }


def response(status: str, output: Sequence[Doc] = (), **more: Any) -> Doc:
    """A response object, as the first and the last events contain it."""
    head = {"id": "resp_68af4030592c81938ec0a5fbab4a3e9f", "object": "response", "created_at": 1764000000}
    settings = {
        "model": "gpt-5.1-codex",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "store": False,
    }
    state = {"status": status, "error": None, "incomplete_details": None, "output": list(output), "usage": None}
    return {**head, **settings, "metadata": {}, "temperature": 1.0, "top_p": 1.0, **state, **more}


def stream(items: Sequence[Doc], usage: Counted | None = None, last: Doc | None = None) -> Said:
    """An answer of these items. `last` replaces its last event."""
    used = {"usage": usage_of(usage)} if usage else {}
    completed = {"type": "response.completed", "response": response("completed", items, **used)}
    begun = [{"type": f"response.{state}", "response": response("in_progress")} for state in ("created", "in_progress")]
    events = [*begun, *(event for index, item in enumerate(items) for event in _events(index, item)), last or completed]
    numbered = ({**event, "sequence_number": number} for number, event in enumerate(events))
    return sent_in_pieces(named_sse(*numbered), x_request_id="req_8f2c")


def incomplete(items: Sequence[Doc], reason: str, usage: Counted | None = None) -> Said:
    details = {"incomplete_details": {"reason": reason}, "usage": usage_of(usage) if usage else None}
    return stream(items, last={"type": "response.incomplete", "response": response("incomplete", items, **details)})


def _events(index: int, item: Doc) -> Iterator[Doc]:
    at = {"item_id": item["id"], "output_index": index}
    yield {"type": "response.output_item.added", "output_index": index, "item": _empty(item)}
    if item["type"] == "reasoning":
        yield from _summary(at, item)
    if item["type"] == "function_call":
        for half in halves(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **at, "delta": half}
        yield {
            "type": "response.function_call_arguments.done",
            **at,
            "arguments": item["arguments"],
            "name": item["name"],
        }
    if item["type"] == "message":
        yield from _content({**at, "content_index": 0}, item["content"][0])
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _empty(item: Doc) -> Doc:
    if item["type"] == "function_call":
        return {**item, "status": "in_progress", "arguments": ""}
    if item["type"] == "message":
        return {**item, "status": "in_progress", "content": []}
    return {**item, "summary": []}


def _summary(at: Doc, item: Doc) -> Iterator[Doc]:
    for number, part in enumerate(item["summary"]):
        here = {**at, "summary_index": number}
        yield {"type": "response.reasoning_summary_part.added", **here, "part": {"type": "summary_text", "text": ""}}
        for half in halves(part["text"]):
            yield {"type": "response.reasoning_summary_text.delta", **here, "delta": half}
        yield {"type": "response.reasoning_summary_text.done", **here, "text": part["text"]}
        yield {"type": "response.reasoning_summary_part.done", **here, "part": part}


def _content(at: Doc, part: Doc) -> Iterator[Doc]:
    refused = part["type"] == "refusal"
    text = part["refusal"] if refused else part["text"]
    kind = "response.refusal" if refused else "response.output_text"
    yield {"type": "response.content_part.added", **at, "part": {**part, "refusal" if refused else "text": ""}}
    for half in halves(text):
        more = {} if refused else {"logprobs": []}
        yield {"type": f"{kind}.delta", **at, "delta": half, **more}
    yield {
        "type": f"{kind}.done",
        **at,
        "refusal" if refused else "text": text,
        **({} if refused else {"logprobs": []}),
    }
    yield {"type": "response.content_part.done", **at, "part": part}


def answer(said: Answer) -> Said:
    items = [reasoning(said.thinking, said.signature)] if said.thinking or said.signature else []
    items += [message(said.text)] if said.text else []
    items += [function_call(call.id, call.name, call.json) for call in said.calls]
    return stream(items, said.usage)


def parts(body: Doc) -> list[Part]:
    return [part for item in body["input"][1:] for part in _parts(item)]


def _parts(item: Doc) -> list[Part]:
    match item["type"]:
        case "reasoning":
            return [Part("thought", "".join(each["text"] for each in item["summary"]), native=item)]
        case "function_call":
            return [Part("call", json.loads(item["arguments"]).get("text", ""), item["call_id"], item["name"], item)]
        case "function_call_output":
            return [Part("result", _text(item["output"]), item["call_id"], native=item)]
        case _:
            return [Part("text", _text(item["content"]), native=item)]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(each["text"] for each in content)


def prefix(body: Doc) -> Any:
    return [body["instructions"], body["tools"]]


def failed(code: str, text: str) -> bytes:
    """The last event of a response that failed on the way."""
    said = response("failed", error={"code": code, "message": text})
    return named_sse({"type": "response.failed", "response": said, "sequence_number": 9})[0]


def error_event(code: str, text: str) -> bytes:
    return named_sse({"type": "error", "code": code, "message": text, "param": None, "sequence_number": 9})[0]


_E = ErrorClass
_HALF = answer(Answer("Let me look at it."))

OPENAI_RESPONSES = Spoken(
    name="openai-responses",
    model="openai/responses/gpt-5.1-codex",
    priced_as="gpt-5.1-codex",
    estimated=True,
    answer=answer,
    parts=parts,
    prefix=prefix,
    writes=True,
    refusals=openai_chat.refusals(),
    breaks=(
        Refusal(broken_by(_HALF, 5, failed("server_error", "An error occurred")), _E.SERVER),
        Refusal(broken_by(_HALF, 5, failed("rate_limit_exceeded", "Rate limit reached")), _E.RATE_LIMIT),
        Refusal(broken_by(_HALF, 5, error_event("server_error", "An error occurred")), _E.SERVER),
        Refusal(
            # litellm looks for the code elsewhere and loses it; the answer is repeated either way.
            broken_by(_HALF, 5, error_event("rate_limit_exceeded", "Rate limit reached")),
            _E.SERVER,
        ),
    ),
)
