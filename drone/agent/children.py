"""Child agents: part of the work, done in a separate conversation of which the parent reads only the end (O-080).

A child has its parent's model, system prompt and list of tools, byte for byte, so that the endpoint's cache holds its
prefix; the tools it may actually use are checked when they are called. It has no children, no session and no
extensions, and its spending is charged to the parent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from drone.agent.budget import RunBudget
from drone.agent.in_memory import NoHooks
from drone.agent.protocols import Approvals, Controls, Guardrails, Hooks, Model, Planning, Recorder, Toolbox
from drone.agent.values import (
    DeltaKind,
    ModelResponse,
    OnDelta,
    Ruling,
    ToolResult,
    ToolSpec,
    UserMessage,
    WaitsFor,
    with_note,
)
from shared.clock import Clock
from shared.errors import Halted, Interrupted, Preempted
from shared.events import ApprovalStep, Body, ChildStep, DecisionStep
from shared.messages import Message, ToolCall
from shared.outcome import ExitStatus
from shared.plans import PRESENT, REPORT
from shared.work_order import Limits

SPAWN = "spawn"
_NOT_FOR_CHILDREN = {
    SPAWN: "a child agent cannot have children; do this part yourself.",
    "todo": "a child agent cannot keep a to-do list; users see its parent's.",
    "answer_review": "a child agent cannot answer a review; put it in your answer.",
    "remember": "a child agent cannot propose notes; put it in your answer.",
    "add_comment": "a child agent cannot write to the thread; put it in your answer.",
    PRESENT: "a child agent cannot present a plan; put it in your answer.",
    REPORT: "a child agent cannot report on the plan; put it in your answer.",
}
"""Tools that are in the request, because its bytes are the parent's, and why calls to them are not run."""


@dataclass(frozen=True)
class Children:
    """Creates the children of one agent."""

    model: Model
    toolbox: Toolbox
    recorder: Recorder
    controls: Controls
    limits: Limits
    clock: Clock
    budget: RunBudget
    guardrails: Guardrails
    approvals: Approvals | None
    ids: set[str]
    system: str
    hooks: Hooks = field(default_factory=NoHooks)
    """Children have no extensions, but policies apply to them as well."""
    planning: Planning | None = None
    """A child changes nothing before its parent's plan is approved."""

    def spawn(self, call_id: str, task: str, tools: Collection[str] | None = None) -> ToolResult:
        """Let a child do `task` with `tools` (None: all tools that children may use), and return its final answer.

        The result is an error with the reason if the child ends early. Raises what the controls and the shared limits
        raise, and Halted when a guardrail ends the run: that ends the parent's step as well.
        """
        from drone.agent.agent import Agent

        controls = _ChildControls(self.controls)
        toolbox = _Whitelisted(self.toolbox, tools, controls)
        agent = Agent(
            model=_SharedModel(self.model, controls),
            toolbox=toolbox,
            recorder=_ChildRecorder(self.recorder, call_id),
            controls=controls,
            limits=self.limits,
            clock=self.clock,
            budget=self.budget,
            guardrails=_SharedGuardrails(self.guardrails),
            approvals=None if self.approvals is None else _ChildApprovals(self.approvals, toolbox),
            ids=self.ids,
            hooks=self.hooks,
            planning=self.planning,
        )
        try:
            outcome = agent.run(self.system, (), task)
        except Preempted:
            if controls.interruption is not None:
                raise controls.interruption from None
            raise
        if outcome.exit_status is ExitStatus.HALTED:
            # The run ends, and not with the child's last words.
            raise Halted(outcome=replace(outcome, response=""))
        if outcome.exit_status in {ExitStatus.STOPPED, ExitStatus.SUBMITTED}:
            return ToolResult(outcome.response or outcome.reason)
        # Its last words are from the middle of its work.
        note = f"(the child agent ended early: {outcome.reason})"
        return ToolResult(with_note(outcome.response, note), is_error=True, note=note)


class _Whitelisted:
    """All tools are in the request, only some may be called (O-081)."""

    def __init__(self, toolbox: Toolbox, names: Collection[str] | None, controls: _ChildControls) -> None:
        self._toolbox = toolbox
        self._names = names
        self._controls = controls

    def specs(self) -> list[ToolSpec]:
        return self._toolbox.specs()

    def refusal(self, call: ToolCall) -> str | None:
        """Why a call is not run; None if it is."""
        if call.name in _NOT_FOR_CHILDREN:
            return _NOT_FOR_CHILDREN[call.name]
        if self._names is None or call.name in self._names:
            return None
        return f"{call.name} is not available to you; use {', '.join(sorted(self._names))}."

    def execute(self, call: ToolCall) -> ToolResult:
        if why := self.refusal(call):
            return ToolResult(f"Error: {why}", is_error=True)
        with self._controls.for_parent():
            return self._toolbox.execute(call)


class _ChildApprovals:
    """The parent's rules; no user is asked about a call that the child's tools refuse in any case."""

    def __init__(self, approvals: Approvals, toolbox: _Whitelisted) -> None:
        self._approvals = approvals
        self._toolbox = toolbox

    def why(self, call: ToolCall) -> str | None:
        return None if self._toolbox.refusal(call) else self._approvals.why(call)


class _SharedModel:
    """The parent's model, which asks the controls of the run itself while it waits for an answer."""

    def __init__(self, model: Model, controls: _ChildControls) -> None:
        self._model = model
        self._controls = controls

    @property
    def window(self) -> int:
        return self._model.window

    def answer(self, messages: Sequence[Message], tools: Sequence[ToolSpec], on_delta: OnDelta) -> ModelResponse:
        with self._controls.for_parent():
            return self._model.answer(messages, tools, on_delta)


class _SharedGuardrails:
    """The parent's rules with their current counts: a child does not start from zero."""

    def __init__(self, guardrails: Guardrails) -> None:
        self.before = guardrails.before
        self.after = guardrails.after
        self.unusable = guardrails.unusable

    def turn_starts(self) -> None:
        """It is still the parent's turn."""

    def turn_ends(self) -> None:
        """It is still the parent's turn."""


class _ChildRecorder:
    """Records a child's steps under the call that started it."""

    def __init__(self, recorder: Recorder, call_id: str) -> None:
        self._recorder = recorder
        self._call_id = call_id

    def record(self, body: Body) -> int:
        if isinstance(body, ApprovalStep | DecisionStep):
            # These are not wrapped, because a person must see them: the whole order waits.
            return self._recorder.record(body)
        return self._recorder.record(ChildStep(call_id=self._call_id, step=body.model_dump(mode="json")))

    def delta(self, kind: DeltaKind, text: str) -> None:  # noqa: ARG002 - not shown: it would mix with the parent's
        self._recorder.delta("output", "")

    def doing(self, text: str, waits_for: WaitsFor = "") -> None:
        self._recorder.doing(f"child agent: {text}", waits_for)


class _ChildControls:
    """Ends a child with its parent. User messages go to the parent: an interruption ends the child."""

    def __init__(self, controls: Controls) -> None:
        self._controls = controls
        self.interruption: Interrupted | None = None

    @contextmanager
    def for_parent(self) -> Iterator[None]:
        """Turn an interruption inside the block into the child's end; `interruption` is then for its parent."""
        try:
            yield
        except Interrupted as interruption:
            self.interruption = interruption
            # The child's own call keeps the output of a command that was broken off.
            raise Preempted(*(each for each in interruption.messages if each.role == "tool")) from interruption

    def check(self) -> None:
        with self.for_parent():
            self._controls.check()

    def steering(self) -> list[UserMessage]:
        return []

    def follow_ups(self) -> list[UserMessage]:
        return []

    def pending(self) -> bool:
        return False

    def ruling(self, call_id: str) -> Ruling | None:
        return self._controls.ruling(call_id)

    def compaction_asked(self) -> str | None:
        return None
