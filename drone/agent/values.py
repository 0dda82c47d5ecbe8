"""What passes between the loop and its surroundings: tools, calls, answers, verdicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from shared.errors import FleetFault
from shared.events import Execution, Usage
from shared.messages import Message

DeltaKind = Literal["text", "thinking", "tool_call", "output"]
"""What a piece of text in flight belongs to; `output` is what a running command prints."""


WaitsFor = Literal["", "person", "provider"]
"""What a run waits for that is no lack of progress: a person's answer, or a time that the provider named."""


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
    execution: Execution = "answered"
    note: str = ""
    """What was added to the output for the model; `output` ends with it."""
    output_bytes: int = 0
    log: Path | None = None


def with_note(output: str, note: str) -> str:
    """The output with a note of the fleet on a line of its own below it."""
    end = "" if not output or output.endswith("\n") else "\n"
    return f"{output}{end}{note}"


@dataclass(frozen=True)
class Verdict:
    """What a guardrail says of a call."""

    action: Literal["allow", "warn", "block", "halt"] = "allow"
    reason: str = ""
    """For the model, and for people."""
    code: str = ""
    guardrail: str = ""
    """The name of the one that spoke."""


@dataclass(frozen=True)
class Patched:
    """A result after all hooks had their say."""

    result: ToolResult
    terminate: bool = False
    """No further question to the model, if every call of the message says so."""


@dataclass(frozen=True)
class Ruling:
    """A person's answer to a call that waits."""

    approved: bool
    comment: str = ""


@dataclass(frozen=True)
class ModelResponse:
    """One complete response of the model, after its stream ended."""

    message: Message
    usage: Usage = field(default_factory=Usage)
    finish_reason: str = ""
    model: str = ""
    """The model that answered, which is a fallback's name where one stepped in."""
    duration_ms: int = 0
    format_problem: str = ""
    """Why this answer cannot be acted on, where the way in which the model calls tools has rules of its own."""


class ModelCallFailed(FleetFault):
    """No answer from the model, after all retries and fallbacks. The loop ends the run as `model_error`.

    `error_class` is the class of the last failure, `detail` all that is known of it.
    """

    def __init__(self, what: str, *, error_class: str, detail: str = "", next: str = "") -> None:
        super().__init__(what, code="E-MODEL-502", why=detail, next=next)
        self.error_class = error_class
        self.detail = detail
