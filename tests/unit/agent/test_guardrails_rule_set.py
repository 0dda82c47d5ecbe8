"""Rules in their order, the first decision, and what becomes of rules that fail (O-090 to O-092)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drone.agent.agent import Agent
from drone.agent.guardrails.rule_set import FAILED, TOO_OFTEN, Rule, RuleSet
from drone.agent.hooks.calling import CallFailed
from drone.agent.values import ToolResult, Verdict
from shared.events import GuardrailStep
from shared.messages import ToolCall
from shared.outcome import ExitStatus
from tests.support.scripted import Loop, calls, says

CALL = ToolCall(id="c1", name="echo")


class Before:
    """A guardrail that says the same before every call."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked = 0

    def before_call(self, call: ToolCall) -> Any:
        self.asked += 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class After:
    """A guardrail that says the same after every call."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.heard: list[str] = []

    def after_call(self, call: ToolCall, result: ToolResult) -> Any:
        self.heard.append(result.output)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class Starts:
    """A guardrail that cannot begin a turn."""

    def on_turn_start(self) -> None:
        raise ValueError("boom")


def overdue(_: Callable[[], object]) -> object:
    raise CallFailed("took longer than 5 s", why="overdue")


class Guarded(Loop):
    """The loop with these rules, whose reports are kept."""

    def guard(self, *rules: Rule, calling: Any = None) -> Guarded:
        self.reports: list[str] = []
        bounds = {"calling": calling} if calling else {}
        self.rules = RuleSet(lambda what, detail: self.reports.append(what), rules, **bounds)
        self.agent = Agent(
            self.model, self.toolbox, self.recorder, self.controls, self.limits, self.clock, guardrails=self.rules
        )
        return self

    @property
    def said(self) -> list[tuple[str, str, str]]:
        steps = [body for body in self.recorder.bodies if isinstance(body, GuardrailStep)]
        return [(step.guardrail, step.action, step.code) for step in steps]


def rules(*given: Rule) -> tuple[RuleSet, list[str]]:
    reports: list[str] = []
    return RuleSet(lambda what, detail: reports.append(what), given), reports


def test_the_first_decision_other_than_allow_counts_and_later_rules_are_not_asked() -> None:
    later = Before(Verdict("halt", "never"))
    loop = Guarded([calls("one"), says("Done.")]).guard(
        Rule("lax", Before(Verdict())),
        Rule("silent", Before(None)),
        Rule("strict", Before(Verdict("block", "not here", "no_way"))),
        Rule("later", later),
    )
    loop.run()
    assert loop.said == [("strict", "block", "no_way")]
    assert (loop.told[1][1], later.asked) == ("This call was blocked: not here", 0)


BROKEN = [ValueError("boom"), SystemExit(), "block", Verdict("forbid")]  # type: ignore[arg-type]


def test_a_rule_that_is_too_slow_is_switched_off_and_a_policy_blocks_from_then_on() -> None:
    rule, policy = (
        Guarded([calls("one", "two"), says("Done.")]).guard(
            Rule("slow", Before(None), policy=is_policy), calling=overdue
        )
        for is_policy in (False, True)
    )
    rule.run()
    policy.run()
    assert (len(rule.reports), len(rule.toolbox.ran)) == (1, 2)
    assert (len(policy.reports), policy.said) == (1, [("slow", "block", FAILED)] * 2)


def test_a_halt_ends_the_run_before_the_call() -> None:
    loop = Guarded([calls("one"), says("never")]).guard(Rule("strict", Before(Verdict("halt", "enough."))))
    outcome = loop.run()
    assert (outcome.exit_status, outcome.reason) == (ExitStatus.HALTED, "A guardrail ended the run: enough.")
    assert loop.toolbox.ran == []


def test_every_rule_hears_of_a_result_and_the_first_decision_counts() -> None:
    first, second = After(Verdict("block", "Hm.")), After(Verdict("halt", "no"))
    loop = Guarded([calls("one"), says("Done.")]).guard(Rule("first", first), Rule("second", second))
    assert loop.run().exit_status is ExitStatus.STOPPED
    assert (first.heard, second.heard) == (["one"], ["one"])
    # After the call, a block can only be a warning.
    assert (loop.said, loop.told[1][1]) == ([("first", "warn", "")], "one\n\n[Hm.]")


def test_of_two_rules_with_one_name_the_file_wins_and_the_other_is_reported() -> None:
    rule_set, reports = rules(
        Rule("same", Before(Verdict("block", "extension")), "the extension e.py", from_file=False),
        Rule("of_extension", Before(None), from_file=False),
        Rule("same", Before(Verdict("block", "file")), "the guardrail g.py"),
        Rule("loop_detection", Before(Verdict("block", "mine"))),
    )
    assert rule_set.before(CALL).reason == "file"
    assert any("the extension e.py" in report and "the guardrail g.py" in report for report in reports)
    assert rule_set.names == ["loop_detection", "same", "of_extension"]
    policy = Rule("same", Before(Verdict("block", "policy")), policy=True, from_file=False)
    assert rules(policy, Rule("same", Before(None)))[0].before(CALL).reason == "policy"


def test_a_rule_that_fails_is_reported_and_skipped() -> None:
    for answer in BROKEN:
        loop = Guarded([calls("one"), says("Done.")]).guard(Rule("bad", Before(answer), "the guardrail g.py"))
        assert loop.run().exit_status is ExitStatus.STOPPED
        assert len(loop.toolbox.ran) == 1
        assert loop.reports[0].startswith("The guardrail bad of the guardrail g.py failed in before_call: ")
        assert [loop.rules.before(CALL).action for _ in range(50)] == ["allow"] * 50
        assert len(loop.reports) == TOO_OFTEN


def test_a_policy_that_fails_blocks() -> None:
    for answer in BROKEN:
        loop = Guarded([calls("one"), says("Done.")]).guard(Rule("strict", Before(answer), policy=True))
        loop.run()
        assert (loop.said, loop.toolbox.ran) == ([("strict", "block", FAILED)], [])
    starts = Guarded([calls("one"), says("Done.")]).guard(Rule("strict", Starts(), policy=True))
    starts.run()
    assert starts.said == [("strict", "block", FAILED)]


def test_a_policy_that_fails_after_a_call_blocks_those_that_follow() -> None:
    loop = Guarded([calls("one", "two"), says("Done.")]).guard(Rule("strict", After(ValueError("boom")), policy=True))
    loop.run()
    assert loop.said == [("strict", "warn", FAILED), ("strict", "block", FAILED)]
    assert [call.arguments for call in loop.toolbox.ran] == ['{"text": "one"}']


def test_rules_are_told_of_the_turns_beginning_and_end() -> None:
    heard: list[str] = []

    class Told:
        def on_turn_start(self) -> None:
            heard.append("start")

        def on_turn_end(self) -> None:
            heard.append("end")

    told = Rule("told", Told())
    Guarded([says("Done.")]).guard(told).run()
    assert heard == ["start", "end"]
    # Also one that comes in the middle of a turn, and only once.
    rule_set, _ = rules()
    rule_set.turn_starts()
    rule_set.replace([told])
    rule_set.replace([told])
    assert heard[2:] == ["start"]


def test_a_decision_without_a_reason_gets_one() -> None:
    rule_set, _ = rules(Rule("terse", Before(Verdict("block"))))
    assert rule_set.before(CALL).reason == "the guardrail terse does not allow it."
