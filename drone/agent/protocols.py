"""What the loop needs from outside: a model, tools, a recorder and controls. Each is implemented elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from shared.errors import FleetFault
from shared.events import Body, Usage
from shared.messages import Message, ToolCall

DeltaKind = Literal["text", "thinking", "tool_call", "output"]
"""What a piece of text in flight belongs to; `output` is what a running command prints."""
OnDelta = Callable[[DeltaKind, str], None]


@dataclass(frozen=True)
class ToolSpec:
    """A tool as the model is told of it; `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


@dataclass(frozen=True)
class ToolResult:
    """What a call came to. `output` is what the model is shown; `log` holds all of it where that was longer."""

    output: str
    return_code: int | None = None
    is_error: bool = False
    output_bytes: int = 0
    log: Path | None = None


@dataclass(frozen=True)
class Answer:
    """One whole answer of the model, after its stream ended."""

    message: Message
    usage: Usage = field(default_factory=Usage)
    finish_reason: str = ""
    model: str = ""
    """The model that answered, which is a fallback's name where one stepped in."""
    duration_ms: int = 0


class Recorder(Protocol):
    """Where the run's events go. What is recorded is durable before the loop acts on it."""

    def record(self, body: Body) -> int:
        """Write one event and return its seq; when this returns, the event survives a crash."""
        ...

    def delta(self, kind: DeltaKind, text: str) -> None:
        """Show text in flight; it may be lost, and is never stored."""
        ...

    def doing(self, text: str) -> None:
        """Say in a few words what the run does now; the next heartbeat carries it."""
        ...


class Controls(Protocol):
    """What people and the fleet want of a running loop."""

    def check(self) -> None:
        """Return at once if the run may go on.

        Cheap, and called often: before each call and while a stream or a command runs.

        Raises Preempted when the fleet wants the run to stop, Interrupted when a person has something to say now,
        StaleRun when another generation holds the order.
        """
        ...

    def steering(self) -> list[str]:
        """Take the messages that enter after the current tool results; each is given once."""
        ...

    def follow_ups(self) -> list[str]:
        """Take the messages that wait until the model stops; each is given once."""
        ...


class Toolbox(Protocol):
    """The tools of a run."""

    def specs(self) -> list[ToolSpec]:
        """The same list, in the same order, on every call: it is part of the prompt's stable prefix."""
        ...

    def execute(self, call: ToolCall) -> ToolResult:
        """Run one call; wrong use is a result with `is_error` that says how to mend the call.

        Raises Submitted when the model declared its work done, and lets Preempted, LimitsExceeded, Interrupted and
        StaleRun of the controls through.
        """
        ...


class Model(Protocol):
    """Whatever answers: LiteLLM, or a script."""

    def answer(self, messages: Sequence[Message], tools: Sequence[ToolSpec], on_delta: OnDelta) -> Answer:
        """Put the transcript to the model and return its whole answer.

        `on_delta` gets each piece as it arrives; whatever it raises breaks the call off and comes out unchanged.

        Raises ModelCallFailed (a FleetError) when there is no answer after all retries.
        """
        ...


class ModelCallFailed(FleetFault):
    """No answer from the model, after all retries and fallbacks. The loop ends the run as `model_error`.

    `error_class` is the class of the last failure, `detail` all that is known of it.
    """

    def __init__(self, what: str, *, error_class: str, detail: str = "", next: str = "") -> None:
        super().__init__(what, code="E-MODEL-502", why=detail, next=next)
        self.error_class = error_class
        self.detail = detail
