"""Values exchanged between the loop and its environment: tools, calls, answers, verdicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from shared.errors import FleetFault
from shared.events import Execution, Usage
from shared.messages import Message
from shared.plans import AgentPlan

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
    parallel: bool = False
    """Its calls only read, from any thread: consecutive ones of a message may run at the same time. The model does not
    see this."""


@dataclass(frozen=True)
class AskedQuestion:
    """A question of the model to its user."""

    text: str
    choices: tuple[str, ...] = ()
    """Suggested answers; empty: none."""
    default: str | None = None
    """The answer that counts after the deadline."""
    deadline: float | None = None
    """Seconds; None: as long as a call waits for approval."""


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
    asks: AskedQuestion | None = None
    """A question to the user, whose answer becomes the result of the call."""


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
class UserMessage:
    """A message of a user to a running loop."""

    text: str
    id: str = ""
    """As in `shared.control.Say.message`."""


@dataclass(frozen=True)
class Ruling:
    """A person's decision on a call that waits, or the answer to a question."""

    approved: bool
    comment: str = ""
    raise_usd: float | None = None
    finish: bool = False
    answer: str = ""
    who: str = ""
    raise_steps: int | None = None
    raise_seconds: float | None = None
    plan: AgentPlan | None = None
    """All as in `shared.control.Decide`."""
    in_time: bool = True
    """False: the clock decided, because no person did."""


@dataclass(frozen=True)
class RawAnswer:
    """An answer as the provider sent it, before it was read."""

    text: str = ""
    """JSON Lines; empty if nothing is known."""
    note: str = ""
    """What of it is missing, and why."""


@dataclass(frozen=True)
class ModelResponse:
    """One complete response of the model, after its stream ended."""

    message: Message
    usage: Usage = field(default_factory=Usage)
    usage_reported: bool = True
    """False: the endpoint reported none, so that the tokens were counted here."""
    listed_usd: float | None = None
    """What it cost at the prices of LiteLLM's list, beside `usage.cost_usd` at the organization's; None if unknown."""
    finish_reason: str = ""
    model: str = ""
    """The model that answered; a fallback's name if one was used."""
    duration_ms: int = 0
    thinking_ms: int = 0
    """Of it, how long its thinking streamed."""
    format_problem: str = ""
    """Why this answer cannot be acted on, if the model's way of calling tools has additional rules."""
    raw: RawAnswer = field(default_factory=RawAnswer, repr=False)


class ModelCallFailed(FleetFault):
    """No answer from the model, after all retries and fallbacks. The loop ends the run as `model_error`.

    `error_class` is the class of the last failure, `detail` its full text; `unconnected`: there was no connection, with
    the endpoint or through the proxy.
    """

    def __init__(
        self, what: str, *, error_class: str, detail: str = "", next: str = "", unconnected: bool = False
    ) -> None:
        super().__init__(what, code="E-MODEL-502", why=detail, next=next)
        self.error_class = error_class
        self.detail = detail
        self.unconnected = unconnected
