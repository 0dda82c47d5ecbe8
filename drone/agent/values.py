"""Values exchanged between the loop and its environment: tools, calls, answers, verdicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from shared.errors import FleetFault
from shared.events import Execution, Usage
from shared.messages import Message

DeltaKind = Literal["text", "thinking", "tool_call", "output"]
"""What a piece of streamed text belongs to; `output` is the output of a running command."""


WaitsFor = Literal["", "person", "provider"]
"""A wait that does not count as lack of progress: for a person's answer, or for a delay that the provider requested."""


OnDelta = Callable[[DeltaKind, str], None]


@dataclass(frozen=True)
class ToolSpec:
    """A tool as described to the model; `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


@dataclass(frozen=True)
class ToolResult:
    """The result of a call. `output` is shown to the model; `log` contains the full output if that was longer."""

    output: str
    return_code: int | None = None
    is_error: bool = False
    execution: Execution = "answered"
    note: str = ""
    """A note added to the output for the model; `output` ends with it."""
    output_bytes: int = 0
    log: Path | None = None


def with_note(output: str, note: str) -> str:
    """The output, followed by a note of the fleet on a separate line."""
    end = "" if not output or output.endswith("\n") else "\n"
    return f"{output}{end}{note}"


@dataclass(frozen=True)
class Verdict:
    """A guardrail's decision on a call."""

    action: Literal["allow", "warn", "block", "halt"] = "allow"
    reason: str = ""
    """For the model, and for people."""
    code: str = ""
    guardrail: str = ""
    """The name of the guardrail that decided."""


@dataclass(frozen=True)
class Patched:
    """A result after all hooks have modified it."""

    result: ToolResult
    terminate: bool = False
    """End the turn without asking the model again, if every call of the message requests it."""


@dataclass(frozen=True)
class Ruling:
    """A person's decision on a call that waits."""

    approved: bool
    comment: str = ""
    raise_usd: float | None = None
    finish: bool = False
    """Both as in `shared.control.Decide`."""


@dataclass(frozen=True)
class ModelResponse:
    """One complete response of the model, after its stream ended."""

    message: Message
    usage: Usage = field(default_factory=Usage)
    usage_reported: bool = True
    """False: the endpoint reported none, so that the tokens were counted here."""
    finish_reason: str = ""
    model: str = ""
    """The model that answered; a fallback's name if one was used."""
    duration_ms: int = 0
    format_problem: str = ""
    """Why this answer cannot be acted on, if the model's way of calling tools has additional rules."""


class ModelCallFailed(FleetFault):
    """No answer from the model, after all retries and fallbacks. The loop ends the run as `model_error`.

    `error_class` is the class of the last failure, `detail` its full text.
    """

    def __init__(self, what: str, *, error_class: str, detail: str = "", next: str = "") -> None:
        super().__init__(what, code="E-MODEL-502", why=detail, next=next)
        self.error_class = error_class
        self.detail = detail
