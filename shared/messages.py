"""Chat messages, as kept by the loop, stored in the journal and carried by an order."""

from __future__ import annotations

from typing import Any, Literal

from shared.wire import Wire

Role = Literal["system", "user", "assistant", "tool"]
Part = Literal["opening", "summary", "other"]
"""Kind of a user message: it opened a run, replaces compacted messages, or is any other."""


class ToolCall(Wire):
    """One call requested by the model. `arguments` is the model's text, which should be JSON."""

    id: str
    name: str
    arguments: str = "{}"


class Message(Wire):
    """One message of a transcript.

    An assistant message with `tool_calls` is followed by exactly one tool message per call id, also for calls
    that were not run. `thinking` is separate from `content`; the model layer decides how it is sent back.
    """

    role: Role
    content: str = ""
    thinking: str = ""
    thinking_blocks: tuple[dict[str, Any], ...] = ()
    """Thinking as signed by its provider, kept unchanged: only that provider accepts it, and only in this form."""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    """Set on tool messages only: the call that this answers."""
    is_error: bool = False
    """Set on tool messages only: the call failed, or was not run."""
    part: Part | None = None
    """Set on user messages that the loop tells apart."""
