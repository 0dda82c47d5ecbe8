"""All events that extensions receive, each with its payload (O-046, O-053)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from drone.agent.values import DeltaKind, ToolResult
from shared.messages import Message, ToolCall
from shared.outcome import Outcome


@dataclass(frozen=True)
class HookEvent:
    """Something that happened. Handlers are registered for its `name`."""

    name: ClassVar[str]


@dataclass(frozen=True)
class SessionStart(HookEvent):
    """A run begins, before any other event. `continues`: the session has earlier turns, or the run is resumed."""

    name = "session_start"
    continues: bool


@dataclass(frozen=True)
class Input(HookEvent):
    """The prompt as the user wrote it; not in a resumed run. A handler may return the text that the model is given
    instead.
    """

    name = "input"
    text: str


@dataclass(frozen=True)
class MessageReceive(HookEvent):
    """A message of a user arrived while the agent works. A handler may return another text, or Block to withhold it."""

    name = "message_receive"
    text: str
    source: Literal["steer", "follow_up"]


@dataclass(frozen=True)
class ModelSelect(HookEvent):
    """Another model than before has answered, for example a fallback; also the first one, with no `previous`."""

    name = "model_select"
    model: str
    previous: str


@dataclass(frozen=True)
class SessionShutdown(HookEvent):
    """The last event of a run."""

    name = "session_shutdown"


@dataclass(frozen=True)
class BeforeAgentStart(HookEvent):
    """The system prompt is built. A handler may return a complete replacement."""

    name = "before_agent_start"
    system_prompt: str


@dataclass(frozen=True)
class ContextEvent(HookEvent):
    """The session's messages before the run begins. A handler may return other messages."""

    name = "context"
    messages: Sequence[Message]


@dataclass(frozen=True)
class AgentStart(HookEvent):
    """The loop begins."""

    name = "agent_start"


@dataclass(frozen=True)
class AgentEnd(HookEvent):
    """The run is over, after verification and reminders, and its last message is stored; once, however it ended."""

    name = "agent_end"
    outcome: Outcome


@dataclass(frozen=True)
class AgentError(HookEvent):
    """Something failed inside the run."""

    name = "agent_error"
    what: str
    detail: str


@dataclass(frozen=True)
class SavePoint(HookEvent):
    """Everything up to here is durable: once after `agent_end`, and after each compaction between two turns."""

    name = "save_point"


@dataclass(frozen=True)
class Settled(HookEvent):
    """Nothing is left to do. Follows `save_point` at the end, unless user messages wait that the run did not read."""

    name = "settled"


@dataclass(frozen=True)
class TurnStart(HookEvent):
    """The model is about to be asked; `number` counts from 1."""

    name = "turn_start"
    number: int


@dataclass(frozen=True)
class TurnEnd(HookEvent):
    """The model's answer was acted on."""

    name = "turn_end"
    number: int


@dataclass(frozen=True)
class MessageStart(HookEvent):
    """The first piece of an answer arrived, or a whole answer; once per answer, even if its stream was repeated."""

    name = "message_start"


@dataclass(frozen=True)
class MessageUpdate(HookEvent):
    """A further piece of an answer."""

    name = "message_update"
    kind: DeltaKind
    text: str


@dataclass(frozen=True)
class MessageEnd(HookEvent):
    """A whole message is recorded and enters the transcript: an answer, a result, or text of a user or the loop."""

    name = "message_end"
    message: Message


@dataclass(frozen=True)
class ToolExecutionStart(HookEvent):
    """A call was recorded and is about to be run."""

    name = "tool_execution_start"
    call_id: str
    tool: str
    arguments: object


@dataclass(frozen=True)
class ToolExecutionUpdate(HookEvent):
    """A running command printed something."""

    name = "tool_execution_update"
    call_id: str
    text: str


@dataclass(frozen=True)
class ToolExecutionEnd(HookEvent):
    """A call was answered."""

    name = "tool_execution_end"
    call_id: str
    output: str
    return_code: int | None
    is_error: bool


@dataclass(frozen=True)
class ToolCalled(HookEvent):
    """A call is about to run. A handler may return a text or a `Block`: the call is then refused with that reason."""

    name = "tool_call"
    call: ToolCall


@dataclass(frozen=True)
class ToolReturned(HookEvent):
    """A call was run. A handler may return a `Patch`; each handler sees the result as patched by those before it."""

    name = "tool_result"
    call: ToolCall
    result: ToolResult


@dataclass(frozen=True)
class BeforeCompaction(HookEvent):
    """A compaction is about to begin. A handler may return CANCEL, or a summary to use instead of the model's."""

    name = "session_before_compact"
    cause: Literal["window", "overflow", "asked"]
    tokens: int
    messages: Sequence[Message]
    """The messages that the summary replaces."""


@dataclass(frozen=True)
class Compacted(HookEvent):
    """A compaction was recorded."""

    name = "session_compact"
    summary: str
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True)
class RetryStart(HookEvent):
    """A model call failed and is retried after `delay_s`."""

    name = "retry_start"
    attempt: int
    max_retries: int
    delay_s: float
    error_class: str


@dataclass(frozen=True)
class RetryEnd(HookEvent):
    """The retried call ended."""

    name = "retry_end"
    attempt: int
    success: bool
    error: str


@dataclass(frozen=True)
class Ephemeral(HookEvent):
    """The model is about to be asked. A handler may return messages for this one question; they are never stored."""

    name = "ephemeral"


@dataclass(frozen=True)
class Block:
    """Returned by a `tool_call` handler to refuse a call; equivalent to returning only the reason."""

    reason: str


@dataclass(frozen=True)
class Patch:
    """Changes requested by a `tool_result` handler; None leaves a field unchanged."""

    output: str | None = None
    is_error: bool | None = None
    terminate: bool = False
    """End the turn without asking the model again, if every call of its message requests it."""


class CancelCompaction:
    """The type of CANCEL."""


CANCEL = CancelCompaction()
"""Returned by a `session_before_compact` handler: leave the context unchanged."""


EVENTS: dict[str, type[HookEvent]] = {event.name: event for event in HookEvent.__subclasses__()}
"""Every event by its name."""
