"""Scripts for the scripted model: their contents, and the reply that a request gets.

A script is a list of replies. Only the request determines which reply comes next: the number of assistant messages
since the message that opened the conversation. So any number of conversations play the whole script in parallel, and
a repeated request gets the same reply again. The only state is which failures were already played.

If a compaction has removed answers, their number is taken from the ids of the remaining calls. A request without tools,
which is how a summary is requested, gets the first reply of the script `summary`, if there is one.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

from shared.transcripts import SITUATION, SUMMARY_BEGINS

DEFAULT = "default"
SUMMARY = "summary"
_MARKER = re.compile(r"\bscript:([\w.-]+)")
_OWN_ID = re.compile(r"call_(\d+)_\d+")


class _Strict(BaseModel):
    # A misspelled field in a script is an error, not a reply that silently behaves differently.
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScriptedCall(_Strict):
    """A tool call; `arguments` as a value, or as text that is sent unchanged, valid or not."""

    name: str
    arguments: dict[str, Any] | str = {}
    id: str | None = None
    """None: `call_<reply>_<position>`."""

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


class ScriptedUsage(_Strict):
    """Tokens to report; None values are estimated from the lengths of the texts."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    thinking_tokens: int = 0
    cached_tokens: int = 0


class Reply(_Strict):
    """One answer, or one way to fail."""

    text: str = ""
    thinking: str = ""
    tool_calls: tuple[ScriptedCall, ...] = ()
    usage: ScriptedUsage | None = ScriptedUsage()
    """None: no usage is reported at all."""
    finish_reason: str | None = None
    """None: `tool_calls` or `stop`, depending on the reply."""
    delay_s: float = 0.0
    """Before the first byte."""
    chunk_delay_s: float | None = None
    """Between two chunks of a stream; None: the server's default."""
    status: int = 200
    error: str | dict[str, Any] = ""
    """Body of an answer whose status is not 200: a message, or the whole `error` object."""
    retry_after: str | float | None = None
    cut_after: int | None = None
    """Break the connection after this many chunks; without a stream, in the middle of the body."""
    end_after: int | None = None
    """End a stream cleanly after this many chunks, without a finish reason and usage."""
    garbage: bool | Literal["body", "event", "wire"] = False
    """`body` (or true): bytes that are not JSON; `event`: a malformed event; `wire`: not even HTTP."""
    fail: tuple[Reply, ...] = ()
    """Failures to play before this reply, one per request."""
    repeat: bool = False
    """On the last reply: repeat it forever."""


class NoReply(Exception):
    """There is no script with this name, or it has no replies left."""


class Book:
    """Scripts by name, and the failures that were already played."""

    def __init__(self, scripts: Mapping[str, Sequence[Reply]]) -> None:
        self._scripts = scripts
        self._played: Counter[str] = Counter()
        self._lock = Lock()

    @classmethod
    def of(cls, source: Any) -> Book:
        """Build a book from a list of replies, or from a mapping of names to lists of replies.

        Raises pydantic's ValidationError, which names the reply and the field, if it is neither.
        """
        named = source if isinstance(source, Mapping) else {DEFAULT: source}
        return cls(TypeAdapter(dict[str, list[Reply]]).validate_python(named))

    @classmethod
    def load(cls, path: Path) -> Book:
        return cls.of(json.loads(path.read_text(encoding="utf-8")))

    def reply(self, messages: Sequence[Mapping[str, Any]], *, with_tools: bool = True) -> tuple[int, Reply]:
        """Return the position and the reply for this request; failures that were not yet played come first."""
        name, index = (SUMMARY, 0) if SUMMARY in self._scripts and not with_tools else _place(messages)
        script = self._scripts.get(name)
        if script is None:
            raise NoReply(f"there is no script named {name!r}; known: {', '.join(sorted(self._scripts))}")
        if index >= len(script) and not (script and script[-1].repeat):
            raise NoReply(f"script {name!r} has {len(script)} replies; number {index + 1} was requested")
        reply = script[min(index, len(script) - 1)]
        return index, self._failure(messages, reply) or reply

    def _failure(self, messages: Sequence[Mapping[str, Any]], reply: Reply) -> Reply | None:
        if not reply.fail:
            return None
        # A retry sends exactly the messages of the failed request: their digest identifies the conversation.
        digest = sha256(json.dumps(messages, sort_keys=True).encode()).hexdigest()
        with self._lock:
            played = self._played[digest]
            self._played[digest] += 1
        return reply.fail[played] if played < len(reply.fail) else None


def _place(messages: Sequence[Mapping[str, Any]]) -> tuple[str, int]:
    """Return the script's name, and the number of answers since the message that opened the conversation."""
    answers, counted = 0, None
    for message in reversed(messages):
        if message.get("role") == "assistant":
            answers += 1
            if counted is None and (number := _number(message)) is not None:
                counted = number + answers
        elif message.get("role") == "user":
            text = _text(message.get("content"))
            marker = _MARKER.search(text)
            name = marker[1] if marker else DEFAULT
            if text.startswith(SUMMARY_BEGINS):
                return name, answers if counted is None else counted
            if marker or SITUATION in text:
                return name, answers
    return DEFAULT, answers


def _number(message: Mapping[str, Any]) -> int | None:
    """The index of an answer's reply, taken from the ids of its calls."""
    ids = (_OWN_ID.match(str(call.get("id"))) for call in message.get("tool_calls") or ())
    return next((int(found[1]) for found in ids if found), None)


def _text(content: Any) -> str:
    """The text of a message, whose content may be a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
