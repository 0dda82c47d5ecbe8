"""Brings the chunks of chat completions into one form, whatever an endpoint omits, sets to null or sends at once."""

from __future__ import annotations

import json
from typing import Any

from drone.model.errors import AnswerInterrupted
from drone.model.raw_chunks import choice_of

Document = dict[str, Any]
_FRAME = {"id": str, "created": int, "model": str}
_ALSO: dict[str, type] = {"thinking_blocks": list, "provider_specific_fields": dict}
"""What else of a delta goes into the answer, as gateways send it."""


class ChatChunks:
    """One answer's chunks: each has only what belongs to the answer; finish reason and usage come at the end."""

    def __init__(self) -> None:
        self._frame: Document = {"id": "chatcmpl", "object": "chat.completion.chunk", "created": 0, "model": ""}
        self._usage: Document | None = None
        self._began = False

    def chunk(self, name: bytes, document: Document) -> Document | None:
        """Return a document as litellm is to read it; None if it adds nothing to the answer. `name`: its event's.

        Raises AnswerInterrupted for one that cannot be understood.
        """
        error = document.get("error") or ((name == b"error" or document.get("object") == "error") and document)
        if error:
            return {"error": _error(error)}
        self._frame |= {key: document[key] for key, kind in _FRAME.items() if isinstance(document.get(key), kind)}
        choice = choice_of(document)
        usage = document.get("usage") or choice.get("usage")
        if isinstance(usage, dict) and any(usage.values()):
            self._usage = {key: value for key, value in usage.items() if value is not None}
        # A whole answer in place of a stream has a message. Some endpoints repeat it whole, beside each delta.
        delta = _delta(choice.get("delta") or choice.get("message") or {})
        if not delta:
            return None
        if self._began and not choice.get("delta"):
            raise AnswerInterrupted("it has a second message")
        self._began = True
        return {**self._frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}

    def end(self, finish_reason: str) -> Document:
        """Return the last chunk."""
        used = {"usage": self._usage} if self._usage else {}
        return {**self._frame, "choices": [{"index": 0, "delta": {}, "finish_reason": finish_reason}], **used}


def _error(error: Any) -> Document:
    """An error with what each of litellm's readers expects: a text, and a number in the place of a status."""
    if not isinstance(error, dict):
        return {"message": str(error), "code": 500}
    message, code = error.get("message"), str(error.get("code"))
    text = message if isinstance(message, str) else json.dumps(error)
    if code.isdecimal() and 400 <= int(code[:9]) < 600:
        return {**error, "message": text, "code": int(code)}
    # The word of an error often tells more than its text.
    return {**error, "message": f"{text} ({code})" if error.get("code") else text, "code": 500}


def _delta(source: Any) -> Document:
    """What a delta adds to the answer."""
    if not isinstance(source, dict):
        raise AnswerInterrupted("it has a delta that is no JSON object")
    text, thought = _texts(source.get("content"))
    named = [source.get(name) for name in ("reasoning_content", "reasoning")]
    calls = source.get("tool_calls") or []
    if not isinstance(calls, list):
        raise AnswerInterrupted("it has tool calls that are no list")
    found = {
        "content": text,
        # litellm renames it: an empty one would replace what stands under the other name.
        "reasoning": next((each for each in named if each and isinstance(each, str)), thought),
        "tool_calls": [_call(at, call) for at, call in enumerate(calls) if isinstance(call, dict)],
        **{name: source[name] for name, kind in _ALSO.items() if isinstance(source.get(name), kind)},
    }
    return {name: value for name, value in found.items() if value}


def _texts(content: Any) -> tuple[str, str]:
    """Text and thinking of a content, which may be a list of parts."""
    if content is None or isinstance(content, str):
        return content or "", ""
    if not isinstance(content, list):
        raise AnswerInterrupted("it has a content that is no text")
    text = thought = ""
    for part in content:
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            text += part["text"]
        elif isinstance(part, dict) and part.get("thinking"):
            inner = part["thinking"]
            thought += inner if isinstance(inner, str) else _texts(inner)[0]
    return text, thought


def _call(at: int, call: Document) -> Document:
    """A piece of a call; arguments that are no text are written as JSON."""
    function = call.get("function") or {}
    if not isinstance(function, dict):
        raise AnswerInterrupted("it has a tool call that is no JSON object")
    arguments = function.get("arguments")
    if not isinstance(arguments, str | None):
        arguments = json.dumps(arguments)
    index, name = call.get("index"), function.get("name")
    return {
        **call,
        "index": index if isinstance(index, int) else at,
        "id": str(call["id"]) if call.get("id") else None,
        "type": "function",
        "function": {"name": name if isinstance(name, str) else None, "arguments": arguments or ""},
    }
