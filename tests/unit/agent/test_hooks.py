"""Hooks: the events of a turn in order (O-010, O-040, O-046, O-053), what handlers may change, and what is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from drone.agent.guardrails.rule_set import Rule, RuleSet
from drone.agent.hooks import events as told
from drone.agent.hooks.bus import TOO_OFTEN, HookBus
from drone.agent.hooks.observer import ObservedRecorder
from drone.agent.in_memory import KeptEvents
from drone.agent.values import ToolResult, Verdict
from shared import events as recorded
from shared.errors import Preempted
from shared.messages import Message, ToolCall
from shared.outcome import ExitStatus, Outcome
from shared.work_order import Limits
from tests.support.compactions import Compacting, long_conversation
from tests.support.scripted import Loop, calls, raising, says

CALL = ToolCall(id="c1", name="echo")
COMPACTION = told.BeforeCompaction("window", 100, ())


class Hooked(Loop):
    """The loop with a bus, whose reports are kept."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.reports: list[str] = []
        self.bus = HookBus(lambda what, detail: self.reports.append(what), "the context")
        self.agent.hooks = self.bus

    def give(self, event: str, *given: Any) -> None:
        """Register one handler for each answer."""
        for one in given:
            self.bus.on(event, lambda event, context, one=one: one, source="the extension x.py")


def test_handlers_are_called_in_the_order_of_their_registration_until_they_are_taken_back() -> None:
    loop, heard = Hooked([says("Done.")]), []
    loop.bus.on("agent_start", lambda event, context: heard.append(("never", event.name, context)))()
    loop.bus.on("agent_start", lambda event, context: heard.append(("first", event.name, context)))
    loop.bus.on("agent_start", lambda event, context: heard.append(("second", event.name, context)))
    # What a handler sets off itself, no handler is told of.
    loop.bus.on("settled", lambda event, context: (heard.append(event.name), loop.bus.notify(event)))
    loop.run()
    assert heard == [("first", "agent_start", "the context"), ("second", "agent_start", "the context"), "settled"]
    with pytest.raises(ValueError, match="tool_cal"):
        loop.bus.on("tool_cal", print)
    with pytest.raises(TypeError, match="async"):
        loop.bus.on("input", asleep)


async def asleep(event: object, context: object) -> None: ...


def test_prompt_history_and_the_next_question_are_what_handlers_make_of_them() -> None:
    loop = Hooked([calls("one"), says("Done.")])
    loop.bus.on("before_agent_start", lambda event, context: event.system_prompt + " Twice.")
    loop.bus.on("before_agent_start", lambda event, context: event.system_prompt.upper())
    loop.bus.on("ephemeral", lambda event, context: [Message(role="user", content="two windows are open")])
    loop.run()
    assert loop.model.asked[0][0].content == "YOU ARE TESTED. TWICE."
    assert [asked[-1].content for asked in loop.model.asked] == ["two windows are open"] * 2
    assert "windows" not in str([*loop.agent.transcript, *loop.recorder.bodies])
    asked = Message(role="assistant", tool_calls=(CALL,))
    history = (Message(role="user", content="x"), asked, Message(role="tool", tool_call_id="c1", content="y"))
    for kept in ([0], [1], [2], [0, 2], [1, 0], []):
        loop = Hooked([says("Done.")])
        loop.bus.on("context", lambda event, context, kept=kept: [event.messages[n] for n in kept])
        # The history is mended wherever it was cut.
        loop.run(*history)
        assert loop.reports == []
        assert ("x" in [message.content for message in loop.model.asked[0]]) == (0 in kept)


class Mean(Exception):
    def __str__(self) -> str:
        raise RuntimeError


WRONG = [
    ("before_agent_start", 5, "int"),
    ("before_agent_start", " ", "str"),
    ("context", "hello", "str"),
    ("context", [1], "list"),
    ("context", [Message(role="system", content="x")], "system message"),
    ("ephemeral", {"role": "user"}, "dict"),
    ("ephemeral", [Message(role="assistant", content="x")], "role"),
    ("tool_call", True, "bool"),
    ("tool_result", "patched", "str"),
    ("tool_result", told.Patch(output=5), "wrong types"),  # type: ignore[arg-type]
]


def test_a_policy_that_fails_or_answers_wrongly_lets_no_call_pass_and_holds_for_children_too() -> None:
    loop = Hooked([calls("one"), says("Done.")])
    loop.bus.on("tool_call", lambda *_: raising(ValueError("boom"))(None), source="the extension p.py", policy=True)
    loop.run()
    assert loop.toolbox.ran == []
    assert "the extension p.py is a policy and failed: ValueError: boom" in loop.told[1][1]
    # It goes on to block, and does not fill the journal.
    assert all("boom" in (loop.bus.block(CALL) or "") for _ in range(50))
    assert len(loop.reports) == TOO_OFTEN
    other = Hooked([])
    other.give("*", None)
    other.give("tool_call", "not a policy")
    children = other.bus.for_children()
    assert children.block(CALL) is None
    other.bus.on("tool_call", lambda *_: False, policy=True)
    assert "bool" in (children.block(CALL) or "")


def test_a_handler_of_everything_observes_and_its_answers_count_for_nothing() -> None:
    loop, heard = Hooked([calls("one"), says("Done.")]), []
    loop.bus.on("*", lambda event, context: heard.append(event.name) or "this is no answer")
    assert loop.run().exit_status is ExitStatus.STOPPED
    assert {"input", "tool_call", "tool_result", "settled"} <= set(heard)
    assert loop.reports == []


def test_a_blocked_call_is_not_run_and_the_model_is_told_why() -> None:
    loop = Hooked([calls("one"), says("Done.")])
    loop.give("tool_call", None, told.Block("not on Sundays"), "never asked")
    loop.run()
    assert loop.toolbox.ran == []
    assert loop.told[1] == ("tool", "This call was blocked: not on Sundays")
    assert [kind for kind in loop.kinds if kind.startswith("tool")] == ["tool_call", "tool_result"]


def test_patches_add_up_and_each_handler_sees_what_those_before_it_made() -> None:
    loop, seen = Hooked([calls("one"), says("Done.")]), []
    loop.bus.on("tool_result", lambda event, context: told.Patch(output=event.result.output + " two"))
    loop.bus.on("tool_result", lambda event, context: told.Patch(output=event.result.output + " three", is_error=True))
    loop.bus.on("tool_result", lambda event, context: seen.append((event.result.output, event.result.is_error)))
    loop.run()
    assert seen == [("one two three", True)]
    assert loop.told[1] == ("tool", "one two three")


def test_a_call_that_all_hooks_end_is_the_last_question_to_the_model() -> None:
    loop = Hooked([calls("one", "two"), says("never")])
    loop.give("tool_result", told.Patch(terminate=True), told.Patch())
    assert loop.run().exit_status is ExitStatus.STOPPED
    assert (len(loop.model.asked), len(loop.toolbox.ran)) == (1, 2)
    other = Hooked([calls("one", "two"), says("Done.")])
    other.bus.on("tool_result", lambda event, context: told.Patch(terminate=event.result.output == "one"))
    other.run()
    assert len(other.model.asked) == 2


def test_an_observer_that_raises_is_reported_and_breaks_nothing() -> None:
    errors = {"ValueError: boom": ValueError("boom"), "SystemExit": SystemExit(1), "Mean": Mean()}
    for event in ("input", "context", "turn_start", "tool_result", "ephemeral", "agent_end", "settled"):
        for said, error in {**errors, "KeyboardInterrupt": KeyboardInterrupt()}.items():
            loop = Hooked([calls("one"), says("Done.")])
            loop.bus.on(event, lambda *_, error=error: raising(error)(None), source="the extension x.py")
            assert loop.run().exit_status is ExitStatus.STOPPED
            assert loop.reports[0].startswith(f"The extension x.py failed on {event}: {said}")
    often = Hooked([])
    often.bus.on("turn_start", lambda *_: raising(ValueError("boom"))(None))
    assert [often.bus.notify(told.TurnStart(number)) for number in range(50)]
    assert len(often.reports) == TOO_OFTEN, "it is switched off and does not fill the journal"
    late = Hooked([says("Done.")])
    late.bus.on("ephemeral", lambda *_: (raising(ValueError("late"))(None) for _ in range(1)))
    assert late.run().exit_status is ExitStatus.STOPPED
    assert "ValueError: late" in late.reports[0]


def test_an_answer_of_the_wrong_type_is_reported_and_ignored() -> None:
    for event, answer, complaint in WRONG:
        loop = Hooked([calls("one"), says("Done.")])
        loop.give(event, answer)
        loop.run()
        assert complaint in loop.reports[0]
        assert loop.told == [("assistant", ""), ("tool", "one"), ("assistant", "Done.")]
    compacting = Hooked([])
    compacting.give("session_before_compact", 7)
    assert compacting.bus.before_compaction(COMPACTION) is None
    assert len(compacting.reports) == 1


def test_foreign_texts_with_half_characters_and_nul_can_be_recorded() -> None:
    bus = HookBus(lambda *_: None)
    bus.on("tool_result", lambda *_: told.Patch(output="a\ud800b\0c"))
    bus.on("tool_call", lambda *_: "no\ud800")
    output = bus.patched(CALL, ToolResult("x")).result.output
    assert recorded.ToolResultStep(call_id="c", output=output).output == "a?b␀c"
    assert bus.block(CALL) == "no?"


class Witness:
    """A guardrail that notes when it is asked."""

    def __init__(self, heard: list[str]) -> None:
        self.heard = heard

    def on_turn_start(self) -> None:
        self.heard.append("guardrail.on_turn_start")

    def before_call(self, call: ToolCall) -> None:
        self.heard.append("guardrail.before_call")

    def after_call(self, call: ToolCall, result: ToolResult) -> Verdict:
        self.heard.append("guardrail.after_call")
        return Verdict()

    def on_turn_end(self) -> None:
        self.heard.append("guardrail.on_turn_end")


def hearing(loop: Loop, events: list[told.HookEvent] | None = None) -> list[str]:
    """Give the loop an agent with extensions; returns the names of the events to come, `events` gets them whole."""
    heard: list[str] = []
    bus = HookBus(lambda *_: None)
    bus.on("*", lambda event, context: heard.append(event.name))
    bus.on("*", lambda event, context: events.append(event) if events is not None else None)
    rules = RuleSet(lambda *_: None, [Rule("witness", Witness(heard))])
    loop.agent = replace(loop.agent, recorder=ObservedRecorder(loop.recorder, bus), hooks=bus, guardrails=rules)
    return heard


def test_the_events_of_a_turn_come_in_the_order_of_the_rules() -> None:
    loop = Loop([calls("one", text="Let me see."), says("Done.")])
    heard = hearing(loop)
    loop.run()
    assert heard == [
        "guardrail.on_turn_start",
        "session_start",
        "input",
        "before_agent_start",
        "context",
        "message_end",  # the prompt
        "agent_start",
        "turn_start",
        "ephemeral",
        "message_start",
        "message_update",
        "model_select",
        "message_end",
        "tool_execution_start",
        "tool_call",
        "guardrail.before_call",
        "tool_result",
        "guardrail.after_call",
        "tool_execution_end",
        "message_end",  # the result
        "turn_end",
        "turn_start",
        "ephemeral",
        "message_start",
        "message_update",
        "message_end",
        "turn_end",
        "guardrail.on_turn_end",
        "agent_end",
        "save_point",
        "settled",
        "session_shutdown",
    ]


ENDING = ["guardrail.on_turn_end", "agent_end", "save_point", "settled", "session_shutdown"]
STOPPED = Outcome(ExitStatus.STOPPED, "It is done.")


def test_a_run_that_goes_on_after_the_model_stopped_ends_once_and_after_its_last_message() -> None:
    loop, events = Loop([says("Done."), calls("one"), says("Done again."), says("And again.")]), []
    heard = hearing(loop, events)
    loop.agent.run("You are tested.", (), "Do it.")
    loop.agent.go_on("The check failed.")
    loop.agent.go_on("You said nothing to the others.")
    assert set(heard).isdisjoint(ENDING)
    loop.agent.end(STOPPED)
    loop.agent.end(STOPPED)
    assert (heard[-5:], [heard.count(name) for name in ENDING]) == (ENDING, [1, 1, 1, 1, 1])
    assert heard.count("guardrail.on_turn_start") == 1
    assert [event.outcome for event in events if isinstance(event, told.AgentEnd)] == [STOPPED]


def test_however_a_run_ends_its_end_is_told_once_in_order_and_truthfully() -> None:
    canceled = Preempted(outcome=Outcome(ExitStatus.CANCELED, "Canceled."))
    ways: dict[ExitStatus, tuple[list[Any], Limits, Preempted | None]] = {
        ExitStatus.MAX_ITERATIONS: ([calls("one"), says("never")], Limits(max_iterations=1), None),
        ExitStatus.TIME_LIMIT: ([says("Late.", delay_s=9)], Limits(max_run_seconds=5), None),
        ExitStatus.FORMAT_ERRORS: ([says("")] * 3, Limits(), None),
        ExitStatus.MODEL_ERROR: ([{"status": 500}], Limits(), None),
        ExitStatus.CANCELED: ([calls("one")], Limits(), canceled),
    }
    for ends, (script, limits, signal) in ways.items():
        loop, events = Loop(script, limits), []
        heard = hearing(loop, events)
        loop.controls.signal = signal
        loop.run()
        assert (heard[-5:], [heard.count(name) for name in ENDING]) == (ENDING, [1, 1, 1, 1, 1])
        assert [event.outcome.exit_status for event in events if isinstance(event, told.AgentEnd)] == [ends]
    unread = Loop([calls("one")], Limits(max_iterations=1))
    heard = hearing(unread)
    unread.toolbox.on_call = lambda _: setattr(unread.controls, "to_follow_up", ["And then?"])
    unread.run()
    assert heard[-4:] == [*ENDING[:3], "session_shutdown"], "it has not settled"
    never = Loop([])
    heard = hearing(never)
    never.agent.end(STOPPED)
    assert heard == []


def test_a_compaction_between_two_turns_is_followed_by_a_save_point_and_one_inside_a_turn_is_not() -> None:
    around, heard = Compacting(script=[says("Done.")], window=16_000), []
    bus = HookBus(lambda *_: None)
    bus.on("*", lambda event, context: heard.append(event.name))
    around.agent.hooks, around.compaction.recorder = bus, ObservedRecorder(around.recorder, bus)
    around.agent.run("You are tested.", long_conversation(steps=22)[1:], "Do it.")
    inside, heard[:] = list(heard), []
    made = sum(iter(lambda: around.agent.compact("Keep the names."), False))
    assert (inside.count("session_compact"), inside.count("save_point")) == (1, 0)
    assert made > 0
    assert heard == ["session_compact", "save_point"] * made


class Watched:
    """A recorder whose events are kept."""

    def __init__(self) -> None:
        self.events: list[told.HookEvent] = []
        self.kept = KeptEvents()
        self.bus = HookBus(lambda *_: None)
        self.bus.on("*", lambda event, context: self.events.append(event))
        self.recorder = ObservedRecorder(self.kept, self.bus, max_retries=3)

    def after(self, *bodies: Any) -> list[told.HookEvent]:
        for body in bodies:
            self.recorder.record(body)
        return self.events


def test_messages_calls_and_retries_begin_go_on_and_end_with_what_belongs_to_them() -> None:
    spoken = Watched()
    spoken.recorder.delta("thinking", "Hm.")
    spoken.recorder.delta("text", "Yes.")
    answer = recorded.AssistantStep(text="Yes.", usage=recorded.Usage(input_tokens=900, output_tokens=50))
    assert [event.name for event in spoken.after(recorded.ReasoningStep(text="Hm."), answer)[:1]] == ["message_start"]
    assert spoken.events[1:] == [
        told.MessageUpdate("thinking", "Hm."),
        told.MessageUpdate("text", "Yes."),
        told.MessageEnd(Message(role="assistant", content="Yes.", thinking="Hm.")),
    ]
    assert spoken.recorder.context_tokens == 950
    assert spoken.after(recorded.CompactionStep(summary="so far", tokens_after=100))[-1].name == "session_compact"
    assert spoken.recorder.context_tokens == 100

    ran = Watched()
    ran.after(recorded.ToolCallStep(call_id="c1", tool="shell", arguments={"command": "ls"}))
    ran.recorder.delta("output", "README")
    assert ran.after(recorded.ToolResultStep(call_id="c1", output="README", return_code=0)) == [
        told.ToolExecutionStart("c1", "shell", {"command": "ls"}),
        told.ToolExecutionUpdate("c1", "README"),
        told.ToolExecutionEnd("c1", "README", 0, is_error=False),
        told.MessageEnd(Message(role="tool", tool_call_id="c1", content="README")),
    ]

    retried = Watched()
    # Extensions are told neither of their own errors nor of the steps of children.
    retried.after(recorded.ErrorStep(what="x", code="E-EXTENSION"), recorded.ChildStep(call_id="c", step={}))
    retried.after(recorded.RetryStep(attempt=1, delay_s=2.5, error_class="rate_limit", error="429"))
    again = recorded.RetryStep(attempt=2, delay_s=5, error_class="server", error="502")
    assert retried.after(again, recorded.ErrorStep(what="No answer.", detail="all")) == [
        told.RetryStart(1, 3, 2.5, "rate_limit"),
        told.RetryEnd(1, success=False, error="502"),
        told.RetryStart(2, 3, 5, "server"),
        told.RetryEnd(2, success=False, error="No answer."),
        told.AgentError("No answer.", "all"),
    ]


def test_every_event_is_one_that_somebody_emits() -> None:
    loop = Loop([calls("one"), says("Done.")])
    loop.controls.to_steer = ["Mind the tests."]
    heard, watched = hearing(loop), Watched()
    loop.run()
    watched.recorder.delta("output", "x")
    retry = recorded.RetryStep(attempt=1, delay_s=2.5, error_class="rate_limit", error="429")
    watched.after(retry, recorded.ErrorStep(what="x"), recorded.CompactionStep(summary="x"))
    watched.after(recorded.AssistantStep(text="x"))
    # The one that is missing is emitted by the compaction, where one is about to begin.
    assert set(told.EVENTS) - {*heard, *(event.name for event in watched.events)} == {"session_before_compact"}
