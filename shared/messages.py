"""Chat messages as the loop keeps them, the journal stores them and an order carries them."""

from __future__ import annotations

from typing import Any, Literal

from shared.wire import Wire

Role = Literal["system", "user", "assistant", "tool"]
Part = Literal["opening", "summary", "other"]
"""Of a user message: it opened a run, stands for messages that were compacted, or is any other."""


class ToolCall(Wire):
    """One call that the model asked for. `arguments` is the model's own text, JSON where the model kept to it."""

    id: str
    name: str
    arguments: str = "{}"


class Message(Wire):
    """One message of a transcript.

    An assistant message with `tool_calls` is followed by exactly one tool message per call id, also for calls
    that were not run. `thinking` is kept apart from `content`; the model layer decides how it is sent back.
    """

    role: Role
    content: str = ""
    thinking: str = ""
    thinking_blocks: tuple[dict[str, Any], ...] = ()
    """Thinking as its provider signed it, kept unchanged: only that provider wants it back, and only in this form."""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    """Set on tool messages only: the call that this answers."""
    is_error: bool = False
    """Set on tool messages only: the call failed, or was not run."""
    part: Part | None = None
    """Set on user messages only. None there: an older process sent it, and its text tells."""
