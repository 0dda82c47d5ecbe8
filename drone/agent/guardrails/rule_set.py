"""All rules of a run in their order; the first decision other than allow counts (O-090 to O-092)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import cast

from drone.agent.guardrails.loop_detection import LoopDetection
from drone.agent.hooks.bus import Report
from drone.agent.hooks.calling import CallFailed, Calling, WrongAnswer, at_once, plain
from drone.agent.values import ToolResult, Verdict
from shared.messages import ToolCall

FAILED = "guardrail_failed"
ACTIONS = ("allow", "warn", "block", "halt")
TOO_OFTEN = 10
"""Failures of one rule that are reported in a run."""


@dataclass(eq=False)
class Rule:
    """One guardrail: an object with `before_call`, `after_call`, `on_turn_start`, `on_turn_end`, or some of them."""

    name: str
    judge: object
    source: str = "this run"
    """Where it comes from, for people: its file."""
    policy: bool = False
    """It fails closed: without an answer from it, no call is run."""
    ours: bool = False
    """Part of the drone: it is called without a time limit."""
    from_file: bool = True
    """It comes from a guardrail file, and takes precedence over an extension's rule with the same name."""
    failures: int = field(default=0, init=False)
    off: bool = field(default=False, init=False)
    """It was too slow and is not asked again in this run."""
    closed: str = field(default="", init=False)
    """Why it blocks every call; empty if it does not."""


class RuleSet:
    """Implements `drone.agent.protocols.Guardrails`. A child agent shares it, including its counts."""

    def __init__(
        self, report: Report, rules: Iterable[Rule] = (), calling: Calling = at_once, loops: LoopDetection | None = None
    ) -> None:
        self._report = report
        self._calling = calling
        loops = loops or LoopDetection()
        self._loops = loops
        self._built_in = Rule(loops.name, loops, "the drone", ours=True)
        self._in_turn = False
        self._rules: tuple[Rule, ...] = ()
        self.replace(rules)

    def replace(self, rules: Iterable[Rule]) -> None:
        """Use these rules from now on, after the built-in one; of two with the same name the second is left out.

        Rules from files come before those of extensions, otherwise the given order applies. A policy is never left
        out: a repository could otherwise disable its owner's rule by reusing its name.
        """
        merged = [self._built_in]
        for rule in sorted(rules, key=lambda rule: not rule.from_file):
            first = next((other for other in merged if other.name == rule.name), None)
            if first is None or rule.policy:
                merged.append(rule)
            else:
                what = f"The guardrail {rule.name} of {rule.source} is ignored"
                self._report(f"{what}: {first.source} has one with the same name.", "")
        fresh = [rule for rule in merged if rule not in self._rules]
        self._rules = tuple(merged)
        if self._in_turn:
            self._start(fresh)

    @property
    def names(self) -> list[str]:
        """The names of all rules, in the order in which they are asked."""
        return [rule.name for rule in self._rules]

    def turn_starts(self) -> None:
        self._in_turn = True
        self._start(self._rules)

    def turn_ends(self) -> None:
        self._in_turn = False
        for rule in self._rules:
            self._asked(rule, "on_turn_end")

    def before(self, call: ToolCall) -> Verdict:
        for rule in self._rules:
            verdict = self._before(rule, call)
            if verdict.action != "allow":
                return verdict
        return Verdict()

    def after(self, call: ToolCall, result: ToolResult) -> Verdict:
        """Every rule receives the result, because most of them count; the first decision other than allow applies."""
        verdicts = [self._after(rule, call, result) for rule in self._rules]
        found = next((verdict for verdict in verdicts if verdict.action != "allow"), Verdict())
        return replace(found, action="warn") if found.action == "block" else found

    def unusable(self, call: ToolCall, problem: str) -> Verdict:
        """Only the built-in rule counts these: others judge calls of tools that exist, with arguments that are JSON."""
        return replace(self._loops.unusable_call(call, problem), guardrail=self._loops.name)

    def _start(self, rules: Iterable[Rule]) -> None:
        for rule in rules:
            failed = self._asked(rule, "on_turn_start")[1]
            if not rule.off:
                # A policy that could not start has no usable counts for this turn.
                rule.closed = failed if rule.policy else ""

    def _before(self, rule: Rule, call: ToolCall) -> Verdict:
        if rule.closed:
            return Verdict("block", rule.closed, FAILED, rule.name)
        verdict, failed = self._asked(rule, "before_call", call)
        return Verdict("block", failed, FAILED, rule.name) if failed and rule.policy else verdict

    def _after(self, rule: Rule, call: ToolCall, result: ToolResult) -> Verdict:
        verdict, failed = self._asked(rule, "after_call", call, result)
        if failed and rule.policy:
            # The call has already run; only later calls can still be blocked.
            rule.closed = failed
            return Verdict("warn", failed, FAILED, rule.name)
        return verdict

    def _asked(self, rule: Rule, method: str, *given: object) -> tuple[Verdict, str]:
        """Return a rule's verdict, and why there is none if the rule failed; a failure is reported."""
        if rule.off:
            return Verdict(), ""

        def ask() -> Verdict:
            act = getattr(rule.judge, method, None)
            return _verdict(rule, None if act is None else cast("Callable[..., object]", act)(*given))

        try:
            return cast("Verdict", (at_once if rule.ours else self._calling)(ask)), ""
        except CallFailed as failed:
            if failed.why == "run_ends":
                return Verdict(), "the run was asked to stop."
            return Verdict(), self._failed(rule, method, failed)

    def _failed(self, rule: Rule, method: str, failed: CallFailed) -> str:
        rule.failures += 1
        what = f"The guardrail {rule.name} of {rule.source} failed in {method}: {failed.what}"
        if failed.why == "overdue":
            rule.off = True
            rule.closed = f"the guardrail {rule.name} is a policy and took too long." if rule.policy else ""
            what += "; it is disabled for this run"
        if rule.failures <= TOO_OFTEN:
            self._report(f"{what}.", failed.detail)
        return f"the guardrail {rule.name} is a policy and failed: {failed.what}."


def _verdict(rule: Rule, answer: object) -> Verdict:
    if answer is None:
        return Verdict()
    if not isinstance(answer, Verdict) or answer.action not in ACTIONS:
        raise WrongAnswer(f"it returned {type(answer).__name__}, not a Verdict")
    if not isinstance(answer.reason, str) or not isinstance(answer.code, str):
        raise WrongAnswer("it returned a Verdict whose reason or code is not a string")
    if answer.action == "allow":
        return Verdict()
    reason = plain(answer.reason) or f"the guardrail {rule.name} does not allow it."
    return Verdict(answer.action, reason, plain(answer.code), rule.name)
