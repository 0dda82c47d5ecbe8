"""Loop detection: each threshold with its code, through the real loop and by itself (O-093)."""

from __future__ import annotations

from drone.agent.agent import Agent
from drone.agent.guardrails.loop_detection import LoopDetection, signature_of
from drone.agent.guardrails.rule_set import RuleSet
from drone.agent.values import ToolResult
from shared.events import GuardrailStep
from shared.messages import ToolCall
from shared.outcome import ExitStatus
from tests.support.scripted import Loop, calls, says

FAILED = ToolResult("Error: no", is_error=True)


def call(arguments: str = "{}", tool: str = "editor") -> ToolCall:
    return ToolCall(id="c", name=tool, arguments=arguments)


def codes(rule: LoopDetection, one: ToolCall, *results: ToolResult) -> list[str]:
    """What is said before and after each call; a call that is blocked has no result."""
    said = []
    for result in results:
        before = rule.before_call(one)
        said.append(before.code if before.action == "block" else rule.after_call(one, result).code)
    return said


class Guarded(Loop):
    """The loop with the built-in rules; tools fail when they are told to."""

    def __post_init__(self) -> None:
        super().__post_init__()
        rules = RuleSet(lambda *_: None)
        self.agent = Agent(
            self.model, self.toolbox, self.recorder, self.controls, self.limits, self.clock, guardrails=rules
        )
        self.toolbox.execute = self.fail  # type: ignore[method-assign]
        self.results = iter([FAILED] * 100)

    def fail(self, call: ToolCall) -> ToolResult:
        self.toolbox.ran.append(call)
        return next(self.results)

    @property
    def said(self) -> list[tuple[str, str]]:
        return [(body.action, body.code) for body in self.recorder.bodies if isinstance(body, GuardrailStep)]


def test_the_same_call_that_fails_is_warned_of_from_the_second_time_and_not_run_a_sixth() -> None:
    loop = Guarded([*[calls("same")] * 6, says("Done.")])
    loop.run()
    warned, blocked = ("warn", "repeated_exact_failure_warning"), ("block", "repeated_exact_failure_block")
    assert loop.said == [warned, warned, warned, warned, blocked]
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
    loop = Guarded([calls(str(n)) for n in range(9)])
    outcome = loop.run()
    assert loop.said == [*[("warn", "same_tool_failure_warning")] * 5, ("halt", "same_tool_failure_halt")]
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


def test_a_success_clears_the_counts_of_failures() -> None:
    rule = LoopDetection()
    codes(rule, call(), *[FAILED] * 4)
    assert codes(rule, call(), ToolResult("fine"), FAILED, FAILED) == ["", "", "repeated_exact_failure_warning"]
    assert codes(rule, call('{"n": 1}'), FAILED) == ["same_tool_failure_warning"]


def test_a_new_turn_begins_to_count_anew() -> None:
    rule = LoopDetection()
    codes(rule, call(), *[FAILED] * 5)
    rule.on_turn_start()
    assert codes(rule, call(), FAILED) == [""]


def test_a_command_that_fails_the_same_way_each_time_is_a_loop() -> None:
    failing = ToolResult("cat: x: No such file", return_code=1)
    said = codes(LoopDetection(), call(tool="shell"), *[failing] * 6)
    assert said[1::4] == ["repeated_exact_failure_warning", "repeated_exact_failure_block"]


def test_a_command_that_fails_otherwise_each_time_is_work() -> None:
    results = [ToolResult(f"{n} failed", return_code=1) for n in range(20)]
    assert set(codes(LoopDetection(), call(tool="shell"), *results)) == {""}
    rule = LoopDetection()
    said = [codes(rule, call(f'{{"n": {n}}}', "shell"), ToolResult("", return_code=1))[0] for n in range(20)]
    assert set(said) == {""}
