"""Interfaces the loop depends on: a model, tools, a recorder and controls. Each is implemented elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from drone.agent.hooks.events import BeforeCompaction, Block, CancelCompaction, HookEvent
from drone.agent.transcript import Transcript
from drone.agent.values import (
    DeltaKind,
    ModelResponse,
    OnDelta,
    Patched,
    Ruling,
    ToolResult,
    ToolSpec,
    UserMessage,
    Verdict,
    WaitsFor,
)
from shared.events import Body, Usage
from shared.messages import Message, ToolCall


class Recorder(Protocol):
    """Receives the run's events. An event is durable before the loop acts on it."""

    def record(self, body: Body) -> int:
        """Write one event and return its seq; when this returns, the event survives a crash."""
        ...

    def delta(self, kind: DeltaKind, text: str) -> None:
        """Show streamed text; it may be lost, and is never stored. An empty text only signals activity."""
        ...

    def doing(self, text: str, waits_for: WaitsFor = "") -> None:
        """Set a short description of the current activity and what it waits for; the next heartbeat carries it."""
        ...


class Controls(Protocol):
    """Input from users and the fleet for a running loop."""

    def check(self) -> None:
        """Return immediately if the run may continue.

        Cheap, and called often: before each call and while a stream or a command runs.

        Raises Preempted when the fleet wants the run to stop, Interrupted when a user message must be handled now.
        """
        ...

    def steering(self) -> list[UserMessage]:
        """Take the messages that enter after the current tool results; each is returned once."""
        ...

    def follow_ups(self) -> list[UserMessage]:
        """Take the messages that wait until the model stops; each is returned once."""
        ...

    def pending(self) -> bool:
        """Whether there are messages of users that were not taken yet."""
        ...

    def ruling(self, call_id: str) -> Ruling | None:
        """A person's ruling on a call that waits for one; None until there is one.

        Raises Suspended when the run should end instead, and leave the wait to a later run.
        """
        ...

    def compaction_asked(self) -> str | None:
        """Take the instructions of a requested compaction, '' if it has none; None: none was requested."""
        ...


class Toolbox(Protocol):
    """The tools of a run."""

    def specs(self) -> list[ToolSpec]:
        """Return the same list, in the same order, on every call: it is part of the prompt's stable prefix.

        Only a message with a review may add a tool for its answers.
        """
        ...

    def execute(self, call: ToolCall) -> ToolResult:
        """Run one call; wrong use gives a result with `is_error` that says how to fix the call.

        Raises Submitted when the model declares its work done, and propagates Preempted, LimitsExceeded and Interrupted
        from the controls.
        """
        ...


class ForeignTool(Protocol):
    """A tool that checks its own arguments: from an MCP server or an extension."""

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def read_only(self) -> bool:
        """Whether it declares that it changes nothing: it may then be used in mode plan and needs no approval."""
        ...

    def execute(self, call: ToolCall) -> ToolResult:
        """As `Toolbox.execute`."""
        ...


class Guardrails(Protocol):
    """Rules for the calls of a turn. They never raise: a broken rule is handled as a decision."""

    def turn_starts(self) -> None:
        """Reset the state of the previous turn; called once for each prompt."""
        ...

    def turn_ends(self) -> None:
        """The run that the prompt began is over, however it ended; called once for each `turn_starts`."""
        ...

    def before(self, call: ToolCall) -> Verdict:
        """Judge a call before it runs. The first rule that does not allow it decides."""
        ...

    def after(self, call: ToolCall, result: ToolResult) -> Verdict:
        """Judge a call's result; `block` has no meaning here and counts as a warning."""
        ...

    def unusable(self, call: ToolCall, problem: str) -> Verdict:
        """Judge a call that names no tool, or whose arguments are no JSON object: it is not run in any case."""
        ...


class Hooks(Protocol):
    """Events for extensions, and the changes they make. Their errors never propagate: they are recorded."""

    def notify(self, event: HookEvent) -> None:
        """Notify observers."""
        ...

    def system_prompt(self, text: str) -> str:
        """Return the prompt as modified by extensions."""
        ...

    def input(self, text: str) -> str:
        """Return the prompt as modified by extensions."""
        ...

    def receive(self, text: str, source: Literal["steer", "follow_up"], /) -> str | Block:
        """Return a user's message as modified by extensions, or why the model is not given it."""
        ...

    def context(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the history as modified by extensions."""
        ...

    def ephemeral(self) -> Sequence[Message]:
        """Return messages for the next question only."""
        ...

    def block(self, call: ToolCall) -> str | None:
        """Return why this call must not run; None if it may."""
        ...

    def patched(self, call: ToolCall, result: ToolResult) -> Patched:
        """Return the result as modified by extensions."""
        ...

    def before_compaction(self, event: BeforeCompaction) -> CancelCompaction | str | None:
        """Return CANCEL, a complete summary, or None to let the model write it."""
        ...


class Approvals(Protocol):
    """Which calls wait for a person."""

    def why(self, call: ToolCall) -> str | None:
        """Return why a call has to wait; None if it may run immediately, or is refused then."""
        ...


class Planning(Protocol):
    """A plan that a person approves before anything is changed."""

    def refusal(self, call: ToolCall) -> str | None:
        """Why a call may not be run in the plan's current state; None if it may."""
        ...

    def settle(self) -> Sequence[str]:
        """Wait for the decision about a presented plan, if there is one, and return what the model is told of it."""
        ...


class Compaction(Protocol):
    """Keeps the conversation within the model's window."""

    def learned(self, usage: Usage, messages: Sequence[Message]) -> None:
        """Record how many tokens a question had, to improve later estimates. `messages`: the question."""
        ...

    def due(self, messages: Sequence[Message]) -> bool:
        """Whether the next question would be too close to the window's limit."""
        ...

    def compact(
        self, transcript: Transcript, cause: Literal["window", "overflow", "asked"], instructions: str = ""
    ) -> bool:
        """Replace the older part with a summary, which is recorded first. False: nothing could be compacted.

        Raises ModelCallFailed when no summary could be written, and what the controls raise meanwhile.
        """
        ...


class Model(Protocol):
    """A source of answers: LiteLLM, or a script."""

    @property
    def window(self) -> int:
        """Maximum tokens of a question and its answer together."""
        ...

    def answer(self, messages: Sequence[Message], tools: Sequence[ToolSpec], on_delta: OnDelta) -> ModelResponse:
        """Send the transcript to the model and return its whole answer.

        `on_delta` gets each piece as it arrives; any exception it raises aborts the call and propagates unchanged.

        Raises ModelCallFailed (a FleetError) when there is no answer after all retries.
        """
        ...
