"""Guardrails (O-090 to O-093): rules in their order, the first decision, those that fail, and loop detection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drone.agent.guardrails.loop_detection import LoopDetection, signature_of
from drone.agent.guardrails.rule_set import FAILED, TOO_OFTEN, Rule, RuleSet
from drone.agent.hooks.calling import CallFailed
from drone.agent.values import ToolResult, ToolSpec, Verdict
from shared.events import GuardrailStep
from shared.messages import ToolCall
from shared.outcome import ExitStatus
from tests.support.scripted import Loop, calls, says

CALL = ToolCall(id="c1", name="echo")


class Says:
    """A guardrail that says the same before every call, after every call or, by raising, at the beginning of a turn."""

    def __init__(self, answer: Any, *, at: str = "before_call") -> None:
        self.answer = answer
        self.heard: list[str] = []
        setattr(self, at, self._say)

    def _say(self, *given: Any) -> Any:
        self.heard.append(given[-1].output if len(given) == 2 else "asked")
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def overdue(_: Callable[[], object]) -> object:
    raise CallFailed("took longer than 5 s", why="overdue")


class Guarded(Loop):
    """The loop with these rules, whose reports are kept."""

    def guard(self, *rules: Rule, **more: Any) -> Guarded:
        self.reports: list[str] = []
        self.rules = RuleSet(lambda what, detail: self.reports.append(what), rules, **more)
        self.agent.guardrails = self.rules
        return self

    @property
    def said(self) -> list[tuple[str, str, str]]:
        steps = [body for body in self.recorder.bodies if isinstance(body, GuardrailStep)]
        return [(step.guardrail, step.action, step.code) for step in steps]

    @property
    def decided(self) -> list[tuple[str, str]]:
        return [(action, code) for _, action, code in self.said]


def rules(*given: Rule) -> tuple[RuleSet, list[str]]:
    reports: list[str] = []
    return RuleSet(lambda what, detail: reports.append(what), given), reports


def test_the_first_decision_other_than_allow_counts_and_later_rules_are_not_asked() -> None:
    later = Says(Verdict("halt", "never"))
    loop = Guarded([calls("one"), says("Done.")]).guard(
        Rule("lax", Says(Verdict())),
        Rule("silent", Says(None)),
        Rule("strict", Says(Verdict("block", "not here", "no_way"))),
        Rule("later", later),
    )
    loop.run()
    assert loop.said == [("strict", "block", "no_way")]
    assert (loop.told[1][1], later.heard) == ("This call was blocked: not here", [])
    terse, _ = rules(Rule("terse", Says(Verdict("block"))))
    assert terse.before(CALL).reason == "the guardrail terse does not allow it."
    halted = Guarded([calls("one"), says("never")]).guard(Rule("strict", Says(Verdict("halt", "enough."))))
    outcome = halted.run()
    assert (outcome.exit_status, outcome.reason) == (ExitStatus.HALTED, "A guardrail ended the run: enough.")
    assert halted.toolbox.ran == []


BROKEN = [ValueError("boom"), SystemExit(), "block", Verdict("forbid")]  # type: ignore[arg-type]


def test_a_rule_that_is_too_slow_is_switched_off_and_a_policy_blocks_from_then_on() -> None:
    for is_policy, ran, said in ((False, 2, []), (True, 0, [("slow", "block", FAILED)] * 2)):
        rule = Rule("slow", Says(None), policy=is_policy)
        loop = Guarded([calls("one", "two"), says("Done.")]).guard(rule, calling=overdue)
        loop.run()
        assert (len(loop.reports), len(loop.toolbox.ran), loop.said) == (1, ran, said)


def test_every_rule_hears_of_a_result_and_the_first_decision_counts() -> None:
    first, second = Says(Verdict("block", "Hm."), at="after_call"), Says(Verdict("halt", "no"), at="after_call")
    loop = Guarded([calls("one"), says("Done.")]).guard(Rule("first", first), Rule("second", second))
    assert loop.run().exit_status is ExitStatus.STOPPED
    assert (first.heard, second.heard) == (["one"], ["one"])
    # After the call, a block can only be a warning.
    assert (loop.said, loop.told[1][1]) == ([("first", "warn", "")], "one\n\n[Hm.]")


def test_of_two_rules_with_one_name_the_file_wins_and_the_other_is_reported() -> None:
    rule_set, reports = rules(
        Rule("same", Says(Verdict("block", "extension")), "the extension e.py", from_file=False),
        Rule("of_extension", Says(None), from_file=False),
        Rule("same", Says(Verdict("block", "file")), "the guardrail g.py"),
        Rule("loop_detection", Says(Verdict("block", "mine"))),
    )
    assert rule_set.before(CALL).reason == "file"
    assert any("the extension e.py" in report and "the guardrail g.py" in report for report in reports)
    assert rule_set.names == ["loop_detection", "same", "of_extension"]
    policy = Rule("same", Says(Verdict("block", "policy")), policy=True, from_file=False)
    assert rules(policy, Rule("same", Says(None)))[0].before(CALL).reason == "policy"


def test_a_rule_that_fails_is_reported_and_skipped_and_a_policy_that_fails_blocks() -> None:
    for answer in BROKEN:
        loop = Guarded([calls("one"), says("Done.")]).guard(Rule("bad", Says(answer), "the guardrail g.py"))
        assert loop.run().exit_status is ExitStatus.STOPPED
        assert len(loop.toolbox.ran) == 1
        assert loop.reports[0].startswith("The guardrail bad of the guardrail g.py failed in before_call: ")
        assert [loop.rules.before(CALL).action for _ in range(50)] == ["allow"] * 50
        assert len(loop.reports) == TOO_OFTEN
    for rule in (*map(Says, BROKEN), Says(ValueError("boom"), at="on_turn_start")):
        loop = Guarded([calls("one"), says("Done.")]).guard(Rule("strict", rule, policy=True))
        loop.run()
        assert (loop.said, loop.toolbox.ran) == ([("strict", "block", FAILED)], [])
    after = Rule("strict", Says(ValueError("boom"), at="after_call"), policy=True)
    loop = Guarded([calls("one", "two"), says("Done.")]).guard(after)
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


NO = ToolResult("Error: no", is_error=True)


def call(arguments: str = "{}", tool: str = "editor") -> ToolCall:
    return ToolCall(id="c", name=tool, arguments=arguments)


def codes(rule: LoopDetection, one: ToolCall, *results: ToolResult) -> list[str]:
    """What is said before and after each call; a call that is blocked has no result."""
    said = []
    for result in results:
        before = rule.before_call(one)
        stopped = {"block": before.code, "halt": before.reason.rpartition(": ")[2]}
        said.append(stopped.get(before.action) or rule.after_call(one, result).code)
    return said


def failing(script: list[dict[str, Any]]) -> Guarded:
    """The loop with the built-in rules; every tool fails."""
    loop = Guarded(script).guard()
    loop.toolbox.execute = lambda call: (loop.toolbox.ran.append(call), NO)[1]  # type: ignore[method-assign]
    return loop


def test_the_same_call_that_fails_is_warned_of_from_the_second_time_and_not_run_a_sixth() -> None:
    loop = failing([*[calls("same")] * 6, says("Done.")])
    loop.run()
    warned, blocked = ("warn", "repeated_exact_failure_warning"), ("block", "repeated_exact_failure_block")
    assert loop.decided == [warned, warned, warned, warned, blocked]
    assert len(loop.toolbox.ran) == 5
    results = [text for role, text in loop.told if role == "tool"]
    assert [text.partition("\n\n[")[0] for text in results[:5]] == ["Error: no"] * 5
    assert results[5].startswith("This call was blocked: ")


def test_a_call_is_the_same_whatever_the_order_and_spacing_of_its_arguments() -> None:
    same = [('{"a": {"c": 1, "b": [2]}}', '{"a":{"b":[2],"c":1}}'), ("", "{}")]
    assert [pair for pair in same if signature_of(call(pair[0])) != signature_of(call(pair[1]))] == []
    others = [call(text) for text in ("{broken", "[" * 100_000, '"\\ud800"', "[1, 2]", "{}")] + [call(tool="grep")]
    assert len({signature_of(other) for other in others}) == len(others)


def test_the_same_tool_that_fails_with_other_arguments_is_warned_of_and_ends_the_run_at_the_eighth() -> None:
    loop = failing([calls(str(n)) for n in range(9)])
    outcome = loop.run()
    assert loop.decided == [*[("warn", "same_tool_failure_warning")] * 5, ("halt", "same_tool_failure_halt")]
    assert (outcome.exit_status, len(loop.toolbox.ran)) == (ExitStatus.HALTED, 8)


def test_a_read_only_call_with_the_same_result_is_warned_of_and_not_run_a_sixth_time() -> None:
    warned, blocked = "idempotent_no_progress_warning", "idempotent_no_progress_block"
    for tool in ("file_read", "glob", "grep", "web_fetch", "mcp_look"):
        rule = LoopDetection(read_only={"mcp_look"})
        assert codes(rule, call(tool=tool), *[ToolResult("same")] * 6) == ["", warned, warned, warned, warned, blocked]
    # Another result is progress.
    results = [ToolResult("one"), ToolResult("one"), ToolResult("two"), ToolResult("two")]
    assert codes(LoopDetection(), call(tool="grep"), *results) == ["", warned, "", warned]
    # What changes things may succeed as often as it likes.
    assert set(codes(LoopDetection(), call(), *[ToolResult("same")] * 20)) == {""}


def test_a_success_or_a_new_turn_clears_the_counts_of_failures() -> None:
    rule = LoopDetection()
    codes(rule, call(), *[NO] * 4)
    assert codes(rule, call(), ToolResult("fine"), NO, NO) == ["", "", "repeated_exact_failure_warning"]
    assert codes(rule, call('{"n": 1}'), NO) == ["same_tool_failure_warning"]
    rule.on_turn_start()
    assert codes(rule, call(), NO) == [""]


def test_a_command_that_fails_the_same_way_each_time_is_a_loop_and_otherwise_each_time_is_work() -> None:
    same = [ToolResult("cat: x: No such file", return_code=1)] * 6
    said = codes(LoopDetection(), call(tool="shell"), *same)
    assert said[1::4] == ["repeated_exact_failure_warning", "repeated_exact_failure_block"]
    others = [ToolResult(f"{n} failed", return_code=1) for n in range(20)]
    assert set(codes(LoopDetection(), call(tool="shell"), *others)) == {""}
    rule = LoopDetection()
    said = [codes(rule, call(f'{{"n": {n}}}', "shell"), ToolResult("", return_code=1))[0] for n in range(20)]
    assert set(said) == {""}


def called(name: str, arguments: Any = "{}") -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


ECHO_X, UNFINISHED = called("echo", {"text": "x"}), called("echo", '{"text": "unfin')


def test_a_model_that_goes_on_with_calls_that_are_not_run_is_ended_after_ten_of_them() -> None:
    editor = called("str_replace_editor", {"command": "view", "path": "README"})
    cases: list[tuple[list[dict[str, Any]], int, str, str]] = [
        ([editor], 10, "calls_not_run_halt", "str_replace_editor: Error: there is no tool named"),
        ([called("bash"), called("python"), called("view")], 10, "calls_not_run_halt", "bash: Error: there is no tool"),
        ([called("")], 10, "calls_not_run_halt", "a tool without a name: Error: this call names no tool"),
        ([called("echo", '["x"]')], 10, "calls_not_run_halt", "echo: Error: the arguments of echo must be one"),
        ([UNFINISHED], 10, "calls_not_run_halt", "echo: Error: the arguments of echo are not valid JSON"),
        ([UNFINISHED, editor], 10, "calls_not_run_halt", "str_replace_editor: Error: there is no tool"),
        ([called("x" * 500)], 10, "calls_not_run_halt", f"{'x' * 63}…: Error: there is no tool"),
        ([ECHO_X], 10, "repeated_call_halt", "the same echo call was made 10 times in a row, always with: x"),
        ([ECHO_X, called("echo", {"text": "y"})], 20, "calls_not_run_halt", "10 calls in a row could not be run"),
    ]
    for script, asked, code, words in cases:
        loop = Guarded(script * 50).guard(loops=LoopDetection(read_only={"echo"}))
        outcome = loop.run()
        assert (outcome.exit_status, len(loop.model.asked)) == (ExitStatus.HALTED, asked), words
        assert loop.said[-1] == ("loop_detection", "halt", code), words
        assert words in outcome.reason, outcome.reason
        assert len(outcome.reason) < 400, words


def test_the_same_failing_call_ends_the_run_at_the_tenth_with_what_it_said() -> None:
    loop = failing([called("shell", {"cmd": "ls"})] * 50)
    loop.toolbox.specs = lambda: [ToolSpec("shell", "Run.")]  # type: ignore[method-assign]
    outcome = loop.run()
    assert (outcome.exit_status, len(loop.model.asked), len(loop.toolbox.ran)) == (ExitStatus.HALTED, 10, 5)
    assert outcome.reason.endswith("the same shell call was made 10 times in a row, always with: Error: no")
    same = [ToolResult("No such file\nmore", return_code=1)] * 10
    assert codes(LoopDetection(), call(tool="shell"), *same)[8:] == ["repeated_exact_failure_block", "No such file"]


def test_calls_that_are_not_run_end_nothing_while_others_are_run_in_between() -> None:
    wrong = [called("bash")] * 9
    loop = Guarded([*wrong, calls("one"), *wrong, calls("two"), *wrong, says("Done.")]).guard()
    assert loop.run().exit_status is ExitStatus.STOPPED
    # The same command that fails, with work in between, is only blocked.
    rule, failed = LoopDetection(), ToolResult("1 failed", return_code=1)
    said = [codes(rule, call(tool="shell"), failed) + codes(rule, call(f"[{n}]"), ToolResult("")) for n in range(30)]
    assert {each[0] for each in said[5:]} == {"repeated_exact_failure_block"}
