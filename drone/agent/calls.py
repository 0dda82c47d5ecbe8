"""The path of a call: check, hooks, guardrails and approval, execution, judgement of the result, answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from drone.agent.answer_checks import call_problem
from drone.agent.approvals import command_of
from drone.agent.batch import CallBatch
from drone.agent.budget import BudgetedControls, RunBudget
from drone.agent.guardrails.loop_detection import signature_of
from drone.agent.protocols import Approvals, Guardrails, Hooks, Planning, Recorder, Toolbox
from drone.agent.question import Question, answer_text
from drone.agent.recorded_transcript import RecordedTranscript
from drone.agent.values import AskedQuestion, Ruling, ToolResult, ToolSpec, Verdict
from shared.clock import Clock
from shared.errors import Halted, InterruptLoop
from shared.events import ApprovalStep, GuardrailStep
from shared.messages import ToolCall
from shared.outcome import ExitStatus, Outcome

LONGEST_APPROVED = 20_000
"""Characters of a shell call; an event holds that many, so that all of it is shown for approval."""
TOO_LONG_TO_APPROVE = (
    f"This call was not run: a command that needs approval may have at most {LONGEST_APPROVED:,} characters. "
    "Write a script into a file and run that."
)
AT_ONCE = 4
"""Calls of one message that run at the same time."""
_Executed = tuple[ToolResult, int]
"""A result, and how long the call took in milliseconds."""


@dataclass(frozen=True)
class _BegunCall:
    """A call that was recorded and judged."""

    call: ToolCall
    started: float
    warning: str = ""
    refused: ToolResult | None = None
    """The result of a call that must not run."""
    halted: Halted | None = None
    """Raised once that result is recorded."""


@dataclass(frozen=True)
class Calls:
    """Runs the calls of one agent. Exactly one result is recorded for each call, even if the call was not run.

    The order is fixed (O-091): hooks of `tool_call`, guardrails, approval by a person, the tool, hooks of
    `tool_result`, guardrails again. Calls that run at the same time are recorded and judged in their order, each before
    it starts, and so are their results, each as soon as those before it are.
    """

    transcript: RecordedTranscript
    recorder: Recorder
    controls: BudgetedControls
    budget: RunBudget
    clock: Clock
    toolbox: Toolbox
    tools: Sequence[ToolSpec]
    """The tools offered to the model."""
    hooks: Hooks
    guardrails: Guardrails
    approvals: Approvals | None
    approval_timeout: float
    planning: Planning | None = None

    def batches(self, calls: Sequence[ToolCall]) -> Iterator[list[ToolCall]]:
        """Yield the calls in their order, divided into those that `run` may take at once (O-041).

        Only calls that just read share a batch, at most AT_ONCE of them. Equal calls do not: a guardrail may judge the
        second one by the result of the first.
        """
        batch: list[ToolCall] = []
        for call in calls:
            if batch and not self._may_join(call, batch):
                yield batch
                batch = []
            batch.append(call)
        if batch:
            yield batch

    def run(self, batch: Sequence[ToolCall], *, cut: bool) -> bool:
        """Run the calls of a batch and record their results; True if hooks of all want the model not to be asked again.

        `cut`: the answer that holds the calls reached the length limit. Raises Halted when a guardrail ends the run,
        and any signal that the controls or the tools let through. What has begun by then ends normally if a guardrail
        ends the run, and at once otherwise; the rest is not run.
        """
        if len(batch) > 1:
            return self._run_at_once(batch, cut=cut)
        self.controls.check()
        begun = self._begin(batch[0], cut=cut)
        return self._finished(begun, partial(self._executed, begun))

    def _run_at_once(self, calls: Sequence[ToolCall], *, cut: bool) -> bool:
        failed: InterruptLoop | None = None
        terminate = True
        with CallBatch(len(calls), self.controls.check) as batch:
            for begun, outcome in self._started(calls, batch, cut=cut):
                try:
                    terminate = self._finished(begun, outcome) and terminate
                except InterruptLoop as signal:
                    # What has begun is awaited, and what has a result keeps it: results are recorded in order.
                    failed = failed or batch.signal or signal
                    self.transcript.close(begun.call, failed)
        if failed := failed or batch.signal:
            raise failed
        return terminate

    def _started(
        self, calls: Sequence[ToolCall], batch: CallBatch, *, cut: bool
    ) -> list[tuple[_BegunCall, Callable[[], _Executed]]]:
        """Record, judge and start the calls, up to one that ends the run or to a signal, each with what awaits it."""
        started: list[tuple[_BegunCall, Callable[[], _Executed]]] = []
        for call in calls:
            if not batch.may_continue():
                break
            begun = self._begin(call, cut=cut)
            act = partial(self._executed, begun)
            started.append((begun, partial(batch.result, batch.start(act)) if begun.refused is None else act))
            if begun.halted is not None:
                break
        return started

    def _may_join(self, call: ToolCall, batch: Sequence[ToolCall]) -> bool:
        if len(batch) == AT_ONCE or not (self._only_reads(call) and self._only_reads(batch[0])):
            return False
        return signature_of(call) not in map(signature_of, batch)

    def _only_reads(self, call: ToolCall) -> bool:
        reads = any(tool.name == call.name and tool.parallel for tool in self.tools)
        return reads and (self.approvals is None or self.approvals.why(call) is None)

    def _begin(self, call: ToolCall, *, cut: bool) -> _BegunCall:
        """Record a call, and decide whether it may run."""
        self.transcript.called(call)
        self.budget.count_tool_call()
        started = self._worked()
        if (problem := call_problem(call, self.tools, cut=cut)) is not None:
            verdict = self.guardrails.unusable(call, problem)
            self._ruled(call, verdict)
            return _BegunCall(call, started, refused=ToolResult(problem, is_error=True), halted=_halted(verdict))
        verdict = self.guardrails.before(call) if (why := self.hooks.block(call)) is None else Verdict("block", why)
        warning = self._ruled(call, verdict)
        return _BegunCall(call, started, warning, self._refused(call, verdict), _halted(verdict))

    def _executed(self, begun: _BegunCall) -> _Executed:
        """Let the tool run a call; return its result and how long it took, in milliseconds."""
        result = self.toolbox.execute(begun.call)
        if result.asks is not None:
            result = self._answered(begun.call, result.asks)
        return result, self._since(begun.started)

    def _finished(self, begun: _BegunCall, outcome: Callable[[], _Executed]) -> bool:
        """Record the result of a call, judged by hooks and guardrails; True if a hook wants the model not to be asked.

        `outcome` executes the call, or waits for it.
        """
        call = begun.call
        if begun.refused is not None:
            self.transcript.returned(call, begun.refused, self._since(begun.started))
            if begun.halted is not None:
                raise begun.halted
            return False
        self.recorder.doing(in_words(call))
        result, duration_ms = outcome()
        patched = self.hooks.patched(call, result)
        verdict = self.guardrails.after(call, patched.result)
        warning = "\n\n".join(filter(None, (begun.warning, self._ruled(call, verdict))))
        self.transcript.returned(call, _with(patched.result, warning), duration_ms)
        if halted := _halted(verdict):
            raise halted
        return patched.terminate

    def _refused(self, call: ToolCall, verdict: Verdict) -> ToolResult | None:
        """Return the result of a call that must not run; None if it may run."""
        if verdict.action in {"block", "halt"}:
            return _held_back(f"This call was blocked: {verdict.reason}")
        # Before the approval: a person decides on the plan, and not on single calls of an agent that still plans.
        if self.planning is not None and (unplanned := self.planning.refusal(call)) is not None:
            return _held_back(f"This call was not run: {unplanned}.")
        why = self.approvals.why(call) if self.approvals else None
        if why is None:
            return None
        if call.name == "shell" and len(call.arguments) > LONGEST_APPROVED:
            return _held_back(TOO_LONG_TO_APPROVE)
        ruling = self._asked(call, why)
        if ruling.approved:
            return None
        return _held_back(f"This call was not approved{f': {ruling.comment}' if ruling.comment else '.'}")

    def _asked(self, call: ToolCall, why: str) -> Ruling:
        """Wait for a person's ruling while the run's clock is paused. Raises what the controls raise meanwhile."""
        step = ApprovalStep(call_id=call.id, tool=call.name, why=why, command=command_of(call))
        return self._ruling(step, self.approval_timeout)

    def _answered(self, call: ToolCall, asked: AskedQuestion) -> ToolResult:
        """Put the model's question to its user, and return the answer as the result of the call."""
        step = ApprovalStep(
            about="question",
            call_id=call.id,
            tool=call.name,
            why=asked.text,
            choices=asked.choices,
            default=asked.default,
        )
        # No question outlasts what a call may wait for approval: that is the limit which the user set.
        timeout = min(filter(None, (asked.deadline, self.approval_timeout)), default=0.0)
        return ToolResult(answer_text(asked, self._ruling(step, timeout)))

    def _ruling(self, step: ApprovalStep, timeout: float) -> Ruling:
        with self.budget.waiting():
            return Question(step, self.recorder, self.clock, timeout).ask(self.controls.ruling, self.controls.check)

    def _ruled(self, call: ToolCall, verdict: Verdict) -> str:
        """Record a guardrail's verdict, and return the text that the model sees with the result."""
        if verdict.action == "allow":
            return ""
        if verdict.guardrail:
            self.recorder.record(
                GuardrailStep(
                    call_id=call.id,
                    guardrail=verdict.guardrail,
                    action=verdict.action,
                    code=verdict.code,
                    reason=verdict.reason,
                )
            )
        return f"[{verdict.reason}]" if verdict.action == "warn" else ""

    def _since(self, started: float) -> int:
        return round((self._worked() - started) * 1000)

    def _worked(self) -> float:
        """A clock that stands still while the run waits for a person: that is no time of the call's."""
        return self.clock.monotonic() - self.budget.waited


def in_words(call: ToolCall) -> str:
    """`shell: npm test`: the tool, and its target if that is a command, a file or a page."""
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = None
    named = [arguments.get(name) for name in ("command", "path", "url")] if isinstance(arguments, dict) else []
    at = next(filter(None, named), None)
    return f"{call.name}: {at}" if isinstance(at, str) else f"running {call.name}"


def _held_back(why: str) -> ToolResult:
    return ToolResult(why, is_error=True, execution="held_back", note=why)


def _with(result: ToolResult, warning: str) -> ToolResult:
    if not warning:
        return result
    added = f"\n\n{warning}"
    return replace(result, output=result.output + added, note=result.note + added)


def _halted(verdict: Verdict) -> Halted | None:
    if verdict.action != "halt":
        return None
    return Halted(outcome=Outcome(ExitStatus.HALTED, f"A guardrail ended the run: {verdict.reason}"))
