"""The way of one call: checked, let through by hooks, guardrails and people, run, looked at, answered."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from drone.agent.answer_checks import call_problem
from drone.agent.budget import Bounded, Budget
from drone.agent.protocols import Ruling, ToolResult, Verdict
from drone.agent.recorded_transcript import Journal
from shared.errors import Halted, InterruptLoop
from shared.events import ApprovalStep, DecisionStep, GuardrailStep
from shared.messages import ToolCall
from shared.outcome import ExitStatus, Outcome

if TYPE_CHECKING:
    from drone.agent.agent import Agent

LOOK_UP_EVERY = 0.2
"""Seconds between two looks for a person's answer."""


class Calls:
    """Runs the calls of one agent. Exactly one result is recorded for each call, also for one that was not let through.

    The order is the rule's (O-091): hooks of `tool_call`, guardrails, the person, the tool, hooks of `tool_result`,
    guardrails again.
    """

    def __init__(self, agent: Agent, journal: Journal, controls: Bounded, budget: Budget) -> None:
        self._agent = agent
        self._journal = journal
        self._controls = controls
        self._budget = budget

    def run(self, call: ToolCall, *, cut: bool) -> bool:
        """Run a call and record its result; returns whether a hook wants no further question to the model.

        `cut`: the answer that holds the call reached the length limit. Raises Halted when a guardrail ends the run,
        and whatever a tool lets through.
        """
        agent = self._agent
        self._journal.called(call)
        self._budget.count_tool_call()
        started = agent.clock.monotonic()
        warning = ""
        refused = self._malformed(call, cut=cut)
        if refused is None:
            verdict = (
                agent.guardrails.before(call) if (why := agent.hooks.block(call)) is None else Verdict("block", why)
            )
            warning = self._ruled(call, verdict)
            refused = self._refused(call, verdict)
        if refused is not None:
            self._journal.returned(call, refused, self._since(started))
            return False
        agent.recorder.doing(in_words(call))
        patched = agent.hooks.patched(call, agent.toolbox.execute(call))
        verdict = agent.guardrails.after(call, patched.result)
        warning = "\n\n".join(filter(None, (warning, self._ruled(call, verdict))))
        self._journal.returned(call, _with(patched.result, warning), self._since(started))
        if verdict.action == "halt":
            raise _halted(verdict)
        return patched.terminate

    def _malformed(self, call: ToolCall, *, cut: bool) -> ToolResult | None:
        problem = call_problem(call, self._agent.tools, cut=cut)
        return None if problem is None else ToolResult(problem, is_error=True)

    def _refused(self, call: ToolCall, verdict: Verdict) -> ToolResult | None:
        """The result of a call that is not run; None: it is."""
        if verdict.action == "halt":
            raise _halted(verdict)
        if verdict.action == "block":
            return ToolResult(f"This call was blocked: {verdict.reason}", is_error=True)
        why = self._agent.approvals.why(call) if self._agent.approvals else None
        if why is None:
            return None
        ruling = self._asked(call, why)
        if ruling.approved:
            return None
        return ToolResult(
            f"This call was not approved{f': {ruling.comment}' if ruling.comment else '.'}", is_error=True
        )

    def _asked(self, call: ToolCall, why: str) -> Ruling:
        """Wait for a person, without letting the run's time pass. Raises what the controls raise meanwhile."""
        agent, timeout = self._agent, self._agent.limits.approval_timeout
        until = agent.clock.now() + timedelta(seconds=timeout) if timeout else None
        agent.recorder.record(ApprovalStep(call_id=call.id, tool=call.name, why=why, until=until))
        agent.recorder.doing(f"waiting for a person to approve {call.name}", "person")
        try:
            with self._budget.waiting():
                ruling = self._answer(call, agent.clock.monotonic() + timeout if timeout else None)
        except InterruptLoop:
            agent.recorder.record(DecisionStep(call_id=call.id, approved=False, by="interruption"))
            raise
        by_clock = ruling is None
        ruling = ruling or Ruling(approved=False, comment=f"nobody answered within {timeout:g} s")
        agent.recorder.record(
            DecisionStep(
                call_id=call.id,
                approved=ruling.approved,
                by="clock" if by_clock else "person",
                comment=ruling.comment,
            )
        )
        return ruling

    def _answer(self, call: ToolCall, deadline: float | None) -> Ruling | None:
        clock = self._agent.clock
        while (ruling := self._controls.ruling(call.id)) is None:
            self._controls.check()
            if deadline is not None and clock.monotonic() >= deadline:
                return None
            clock.sleep(LOOK_UP_EVERY)
        return ruling

    def _ruled(self, call: ToolCall, verdict: Verdict) -> str:
        """Record what a guardrail had to say, and return what the model shall read of it beside the result."""
        if verdict.action == "allow":
            return ""
        if verdict.guardrail:
            self._agent.recorder.record(
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
        return round((self._agent.clock.monotonic() - started) * 1000)


def in_words(call: ToolCall) -> str:
    """`shell: npm test`: the tool, and what it is pointed at where that is a command or a file."""
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = None
    at = arguments.get("command") or arguments.get("path") if isinstance(arguments, dict) else None
    return f"{call.name}: {at}" if isinstance(at, str) else f"running {call.name}"


def _with(result: ToolResult, warning: str) -> ToolResult:
    return replace(result, output=f"{result.output}\n\n{warning}") if warning else result


def _halted(verdict: Verdict) -> Halted:
    return Halted(outcome=Outcome(ExitStatus.HALTED, f"A guardrail ended the run: {verdict.reason}"))
