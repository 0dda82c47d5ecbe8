"""The loop, step by step, with a scripted model and echoing tools."""

from __future__ import annotations

from functools import partial

import pytest

from drone.agent.approvals import AskingFor
from shared.errors import Interrupted, Preempted, Suspended
from shared.events import AssistantStep, ToolCallStep, ToolResultStep, UserStep
from shared.messages import Message
from shared.outcome import ExitStatus, Outcome
from shared.work_order import Limits
from tests.support.scripted import Loop, calls, says, submits


def test_an_answer_without_calls_ends_the_run_with_its_text() -> None:
    outcome = Loop([says("All done.")], Limits(max_iterations=1)).run()
    assert (outcome.exit_status, outcome.response) == (ExitStatus.STOPPED, "All done.")


def test_three_answers_in_a_row_without_content_are_paid_and_end_the_run() -> None:
    loop = Loop([says(""), says(""), calls("one"), *[says("")] * 3], cost_usd=0.5)
    assert loop.run().exit_status is ExitStatus.FORMAT_ERRORS
    assert [role for role, _ in loop.told[-6:]] == ["assistant", "user"] * 3
    assert loop.agent.stats().cost_usd == 3.0


def test_every_call_has_its_step_and_its_result_step_also_when_it_was_not_run() -> None:
    reply = submits("Here it is.")
    reply["tool_calls"] += calls("too late")["tool_calls"]
    loop = Loop([reply])
    outcome = loop.run()
    assert (outcome.exit_status, outcome.response) == (ExitStatus.SUBMITTED, "Here it is.")
    assert [call.name for call in loop.toolbox.ran] == ["submit"]
    assert loop.told[-1] == ("tool", "This call was not run: The model submitted its work.")
    asked = [body.call_id for body in loop.recorder.bodies if isinstance(body, ToolCallStep)]
    answered = [body for body in loop.recorder.bodies if isinstance(body, ToolResultStep)]
    assert asked == [body.call_id for body in answered] == ["call_0_0", "call_0_1"]
    assert [(body.execution, body.is_error) for body in answered] == [("submitted", False), ("held_back", True)]


def test_everything_is_recorded_in_the_order_in_which_it_happened_and_a_call_before_it_is_run() -> None:
    loop, seen = Loop([calls("one", thinking="Hm."), says("Done.")]), []
    loop.toolbox.on_call = lambda _: seen.extend(loop.kinds)
    loop.run()
    assert seen[-1] == "tool_call"
    assert loop.kinds == ["user", "reasoning", "assistant", "tool_call", "tool_result", "assistant"]
    call, result, last = loop.recorder.bodies[3:]
    assert isinstance(call, ToolCallStep)
    assert isinstance(result, ToolResultStep)
    assert isinstance(last, AssistantStep)
    assert (call.tool, call.arguments, result.call_id) == ("echo", {"text": "one"}, call.call_id)
    assert "one" in result.output
    assert (last.text, last.model, last.finish_reason) == ("Done.", "scripted", "stop")


def test_the_limit_of_answers_is_a_success_after_the_last_calls_other_limits_fail_and_nought_is_none() -> None:
    loop = Loop([calls("one"), calls("two"), says("never")], Limits(max_iterations=2))
    outcome = loop.run()
    assert (outcome.exit_status, outcome.succeeded) == (ExitStatus.MAX_ITERATIONS, True)
    assert loop.told[-1] == ("tool", "two")
    of_cost = Loop([calls("one"), calls("two"), says("never")], Limits(cost_limit=2.0), cost_usd=1.0)
    outcome = of_cost.run()
    assert (outcome.exit_status, outcome.succeeded) == (ExitStatus.COST_LIMIT, False)
    assert len(of_cost.model.asked) == 2
    usage = {"input_tokens": 60, "output_tokens": 40}
    of_tokens = Loop([calls("one", usage=usage), says("never")], Limits(token_limit=100))
    assert of_tokens.run().exit_status is ExitStatus.TOKEN_LIMIT
    none = Limits(max_iterations=0, cost_limit=0, max_run_seconds=0, token_limit=0)
    endless = Loop([*[calls("again")] * 60, says("Done.")], none, cost_usd=9.0)
    assert endless.run().exit_status is ExitStatus.STOPPED


def test_the_limit_that_breaks_a_call_off_leaves_all_calls_answered() -> None:
    loop = Loop([calls("one", "two", "three")], Limits(max_run_seconds=5))
    loop.toolbox.on_call = lambda _: loop.clock.sleep(6)
    outcome = loop.run()
    assert outcome.exit_status is ExitStatus.TIME_LIMIT
    assert [text[:22] for _, text in loop.told] == ["", "one", "This call was not run:", "This call was not run:"]


def test_an_answer_that_is_cut_at_the_length_limit_is_not_taken_for_the_end() -> None:
    loop = Loop([says("And so I", finish_reason="length"), says("Done.")])
    assert loop.run().response == "Done."
    assert "length limit" in loop.told[1][1]


def test_wrong_use_of_a_tool_gets_an_error_that_says_how_to_mend_it() -> None:
    nested = '{"text": ' + "[" * 65 + "]" * 65 + "}"
    given: list[tuple[str, str, str]] = [
        ("echo", '{"text": "unfin', "not valid JSON"),
        ("echo", '["text"]', "one JSON object"),
        ("echo", nested, "nested too deeply"),
        ("ecco", "{}", "Call one of: echo, submit."),
        ("", "{}", "names no tool. Call one of: echo, submit."),
    ]
    loop = Loop([{"tool_calls": [{"name": name, "arguments": text} for name, text, _ in given]}, says("Done.")])
    loop.agent.approvals = AskingFor("all")
    loop.run()
    told = [text for role, text in loop.told if role == "tool"]
    assert [hint for (*_, hint), text in zip(given, told, strict=True) if hint not in text] == []
    assert "approval" not in loop.kinds
    assert not loop.toolbox.ran
    recorded = [body for body in loop.recorder.bodies if isinstance(body, ToolCallStep)]
    assert recorded[2].model_dump(mode="json")["arguments"] == nested


def test_call_ids_that_come_twice_or_not_at_all_are_made_distinct() -> None:
    same = {"name": "echo", "arguments": {"text": "x"}, "id": "0"}
    loop = Loop([{"tool_calls": [same, same, {**same, "id": ""}]}, {"tool_calls": [same]}, says("Done.")])
    loop.run()
    ids = [message.tool_call_id for message in loop.agent.transcript if message.role == "tool"]
    assert ids == ["0", "0_2", "call", "0_3"]


def test_steering_enters_after_the_tool_results() -> None:
    loop = Loop([calls("one", "two"), says("Done.")])
    loop.controls.to_steer = ["Mind the tests."]
    loop.run()
    assert loop.told[1:4] == [("tool", "one"), ("tool", "two"), ("user", "Mind the tests.")]


@pytest.mark.parametrize("ending", [says("Done."), submits("Done.")])
def test_follow_ups_enter_when_the_model_stops_and_the_run_goes_on(ending: dict[str, object]) -> None:
    loop = Loop([ending, says("That too.")])
    loop.controls.to_follow_up = ["And now the docs."]
    assert loop.run().response == "That too."
    assert loop.told[-2] == ("user", "And now the docs.")
    assert [body.source for body in loop.recorder.bodies if isinstance(body, UserStep)] == ["prompt", "follow_up"]


def test_a_preempted_run_ends_with_the_outcome_that_the_signal_carries() -> None:
    loop = Loop([calls("one", "two")])
    outcome = Outcome(ExitStatus.CANCELED, "Somebody canceled the order.")
    loop.toolbox.on_call = lambda _: setattr(loop.controls, "signal", Preempted(outcome=outcome))
    assert loop.run() == outcome
    assert loop.told[-1] == ("tool", "This call was not run: Somebody canceled the order.")
    without = Loop([says("never")])
    without.controls.signal = Preempted()
    with pytest.raises(Preempted):
        without.run()


def test_a_model_that_cannot_be_reached_ends_the_run_with_one_sentence() -> None:
    loop = Loop([calls("one"), {"status": 500}])
    outcome = loop.run()
    assert (outcome.exit_status, outcome.reason) == (ExitStatus.MODEL_ERROR, "The script failed with 500.")
    assert loop.kinds[-1] == "error"


def test_stats_add_up_what_the_answers_used() -> None:
    usage = {"input_tokens": 10, "output_tokens": 5, "thinking_tokens": 2, "cached_tokens": 8}
    loop = Loop([calls("one", "two", usage=usage), says("Done.", usage=usage)], cost_usd=0.25)
    loop.run()
    stats = loop.agent.stats()
    assert (stats.tool_calls, stats.input_tokens, stats.output_tokens, stats.thinking_tokens) == (2, 20, 10, 4)
    assert (stats.cached_tokens, stats.cost_usd) == (16, 0.5)
    unknown = Loop([says("Done.")], cost_usd=None)
    unknown.run()
    assert unknown.agent.stats().cost_usd is None


def test_a_step_is_reported_with_the_calls_of_steps_that_were_broken_off_before_it() -> None:
    signals = [Interrupted(Message(role="user", content="Wait.")), Suspended(), None, None, None]
    loop = Loop([calls("one", "two"), calls("three", "four"), calls("five"), says("Done.")])
    reported: list[tuple[str, tuple[str, ...]]] = []

    def noted(when: str, message: Message) -> bool:
        reported.append((when, tuple(call.id for call in message.tool_calls)))
        return False

    loop.toolbox.on_call = lambda _: setattr(loop.controls, "signal", signals.pop(0))
    loop.agent.on_step, loop.agent.may_suspend = partial(noted, "step"), partial(noted, "suspended")
    assert loop.run().response == "Done."
    so_far = ("call_0_0", "call_0_1", "call_1_0", "call_1_1")
    assert reported == [("suspended", so_far), ("step", so_far), ("step", ("call_2_0",))]
