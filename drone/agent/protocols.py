"""What the loop needs from outside: a model, tools, a recorder and controls. Each is implemented elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from drone.agent.hooks.events import BeforeCompaction, CancelCompaction, HookEvent
from drone.agent.transcript import Transcript
from drone.agent.values import (
    DeltaKind,
    ModelResponse,
    OnDelta,
    Patched,
    Ruling,
    ToolResult,
    ToolSpec,
    Verdict,
    WaitsFor,
)
from shared.events import Body, Usage
from shared.messages import Message, ToolCall


class Recorder(Protocol):
    """Where the run's events go. What is recorded is durable before the loop acts on it."""

    def record(self, body: Body) -> int:
        """Write one event and return its seq; when this returns, the event survives a crash."""
        ...

    def delta(self, kind: DeltaKind, text: str) -> None:
        """Show text in flight; it may be lost, and is never stored. An empty text says only that something goes on."""
        ...

    def doing(self, text: str, waits_for: WaitsFor = "") -> None:
        """Say in a few words what the run does now, and what it waits for; the next heartbeat carries it."""
        ...


class Controls(Protocol):
    """What people and the fleet want of a running loop."""

    def check(self) -> None:
        """Return at once if the run may go on.

        Cheap, and called often: before each call and while a stream or a command runs.

        Raises Preempted when the fleet wants the run to stop, Interrupted when a person has something to say now.
        """
        ...

    def steering(self) -> list[str]:
        """Take the messages that enter after the current tool results; each is given once."""
        ...

    def follow_ups(self) -> list[str]:
        """Take the messages that wait until the model stops; each is given once."""
        ...

    def ruling(self, call_id: str) -> Ruling | None:
        """A person's answer to a call that waits for one; None as long as there is none."""
        ...

    def compaction_asked(self) -> str | None:
        """Take the instructions of a compaction that somebody asked for, '' where there are none; None: nobody did."""
        ...


class Toolbox(Protocol):
    """The tools of a run."""

    def specs(self) -> list[ToolSpec]:
        """The same list, in the same order, on every call: it is part of the prompt's stable prefix."""
        ...

    def execute(self, call: ToolCall) -> ToolResult:
        """Run one call; wrong use is a result with `is_error` that says how to mend the call.

        Raises Submitted when the model declared its work done, and lets Preempted, LimitsExceeded and Interrupted of
        the controls through.
        """
        ...


class ForeignTool(Protocol):
    """A tool that checks its own arguments: of an MCP server, or of an extension."""

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def read_only(self) -> bool:
        """It says of itself that it changes nothing: it may be used in mode plan and needs no approval."""
        ...

    def execute(self, call: ToolCall) -> ToolResult:
        """As `Toolbox.execute`."""
        ...


class Guardrails(Protocol):
    """Rules over the calls of a turn. They never raise: a broken rule is one of their decisions."""

    def turn_starts(self) -> None:
        """Forget what belongs to the turn before; called once for each prompt."""
        ...

    def turn_ends(self) -> None: ...

    def before(self, call: ToolCall) -> Verdict:
        """Judge a call that is about to be run. The first rule that does not allow it speaks for all."""
        ...

    def after(self, call: ToolCall, result: ToolResult) -> Verdict:
        """Judge what came of it; `block` means nothing here any more and counts as a warning."""
        ...


class Hooks(Protocol):
    """What extensions hear and change. Nothing that they do raises here: their errors are recorded."""

    def notify(self, event: HookEvent) -> None:
        """Let observers know."""
        ...

    def system_prompt(self, text: str) -> str:
        """The prompt, as the extensions want it."""
        ...

    def context(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The history, as the extensions want it."""
        ...

    def ephemeral(self) -> Sequence[Message]:
        """Messages for the next question alone."""
        ...

    def block(self, call: ToolCall) -> str | None:
        """Why this call shall not be run; None if nobody minds."""
        ...

    def patched(self, call: ToolCall, result: ToolResult) -> Patched:
        """The result, as the extensions want it."""
        ...

    def before_compaction(self, event: BeforeCompaction) -> CancelCompaction | str | None:
        """CANCEL, a ready summary, or None: the model shall write it."""
        ...


class Approvals(Protocol):
    """Which calls wait for a person."""

    def why(self, call: ToolCall) -> str | None:
        """Say why a call has to wait; None if it may be run at once."""
        ...


class Compaction(Protocol):
    """Keeps the conversation within the model's window."""

    def learned(self, usage: Usage, messages: Sequence[Message]) -> None:
        """Take note of what a question came to in tokens, so that estimates get better. `messages`: the question."""
        ...

    def due(self, messages: Sequence[Message]) -> bool:
        """Whether the next question would come too near to the window."""
        ...

    def compact(
        self, transcript: Transcript, cause: Literal["window", "overflow", "asked"], instructions: str = ""
    ) -> bool:
        """Put a summary in the place of the older part, recorded before it is done. False: nothing could be compacted.

        Raises ModelCallFailed when the summary could not be had, and what the controls raise meanwhile.
        """
        ...


class Model(Protocol):
    """Whatever answers: LiteLLM, or a script."""

    @property
    def window(self) -> int:
        """Tokens that a question and its answer may have together."""
        ...

    def answer(self, messages: Sequence[Message], tools: Sequence[ToolSpec], on_delta: OnDelta) -> ModelResponse:
        """Put the transcript to the model and return its whole answer.

        `on_delta` gets each piece as it arrives; whatever it raises breaks the call off and comes out unchanged.

        Raises ModelCallFailed (a FleetError) when there is no answer after all retries.
        """
        ...
