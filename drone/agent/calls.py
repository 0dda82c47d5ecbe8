"""The path of one call: check, hooks, guardrails and approval, execution, judgement of the result, answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from drone.agent.answer_checks import call_problem
from drone.agent.approvals import command_of
from drone.agent.budget import BudgetedControls, RunBudget
from drone.agent.protocols import Approvals, Guardrails, Hooks, Recorder, Toolbox
from drone.agent.question import Question
from drone.agent.recorded_transcript import RecordedTranscript
from drone.agent.values import Ruling, ToolResult, ToolSpec, Verdict
from shared.clock import Clock
from shared.errors import Halted
from shared.events import ApprovalStep, GuardrailStep
from shared.messages import ToolCall
from shared.outcome import ExitStatus, Outcome

LONGEST_APPROVED = 20_000
"""Characters of a shell call; an event holds that many, so that all of it is shown for approval."""
TOO_LONG_TO_APPROVE = (
    f"This call was not run: a command that needs approval may have at most {LONGEST_APPROVED:,} characters. "
    "Write a script into a file and run that."
)


@dataclass(frozen=True)
class Calls:
    """Runs the calls of one agent. Exactly one result is recorded for each call, even if the call was not run.

    The order is fixed (O-091): hooks of `tool_call`, guardrails, approval by a person, the tool, hooks of
    `tool_result`, guardrails again.
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

    def run(self, call: ToolCall, *, cut: bool) -> bool:
        """Run a call and record its result; return True if a hook wants the model not to be asked again.

        `cut`: the answer that holds the call reached the length limit. Raises Halted when a guardrail ends the run,
        and any signal that the tool lets through.
        """
        self.transcript.called(call)
        self.budget.count_tool_call()
        started = self.clock.monotonic()
        warning = ""
        refused = self._malformed(call, cut=cut)
        if refused is None:
            verdict = self.guardrails.before(call) if (why := self.hooks.block(call)) is None else Verdict("block", why)
            warning = self._ruled(call, verdict)
            refused = self._refused(call, verdict)
        if refused is not None:
            self.transcript.returned(call, refused, self._since(started))
            return False
        self.recorder.doing(in_words(call))
        patched = self.hooks.patched(call, self.toolbox.execute(call))
        verdict = self.guardrails.after(call, patched.result)
        warning = "\n\n".join(filter(None, (warning, self._ruled(call, verdict))))
        self.transcript.returned(call, _with(patched.result, warning), self._since(started))
        if verdict.action == "halt":
            raise _halted(verdict)
        return patched.terminate

    def _malformed(self, call: ToolCall, *, cut: bool) -> ToolResult | None:
        problem = call_problem(call, self.tools, cut=cut)
        return None if problem is None else ToolResult(problem, is_error=True)

    def _refused(self, call: ToolCall, verdict: Verdict) -> ToolResult | None:
        """Return the result of a call that must not run; None if it may run."""
        if verdict.action == "halt":
            raise _halted(verdict)
        if verdict.action == "block":
            return _held_back(f"This call was blocked: {verdict.reason}")
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
        question = Question(step, self.recorder, self.clock, self.approval_timeout)
        with self.budget.waiting():
            return question.ask(self.controls.ruling, self.controls.check)

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
        return round((self.clock.monotonic() - started) * 1000)


def in_words(call: ToolCall) -> str:
    """`shell: npm test`: the tool, and its target if that is a command or a file."""
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = None
    at = arguments.get("command") or arguments.get("path") if isinstance(arguments, dict) else None
    return f"{call.name}: {at}" if isinstance(at, str) else f"running {call.name}"


def _held_back(why: str) -> ToolResult:
    return ToolResult(why, is_error=True, execution="held_back", note=why)


def _with(result: ToolResult, warning: str) -> ToolResult:
    if not warning:
        return result
    added = f"\n\n{warning}"
    return replace(result, output=result.output + added, note=result.note + added)


def _halted(verdict: Verdict) -> Halted:
    return Halted(outcome=Outcome(ExitStatus.HALTED, f"A guardrail ended the run: {verdict.reason}"))
