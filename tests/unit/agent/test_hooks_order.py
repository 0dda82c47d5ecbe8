"""The events of a whole turn: each once, in the order of the rules (O-010, O-040, O-046, O-053), with its payload."""

from __future__ import annotations

from typing import Any

from drone.agent.agent import Agent
from drone.agent.guardrails.rule_set import Rule, RuleSet
from drone.agent.hooks.bus import HookBus
from drone.agent.hooks.events import (
    EVENTS,
    AgentError,
    Compacted,
    HookEvent,
    MessageEnd,
    MessageUpdate,
    RetryEnd,
    RetryStart,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from drone.agent.hooks.observer import ObservedRecorder
from drone.agent.in_memory import KeptEvents
from drone.agent.values import ToolResult, Verdict
from shared.events import (
    AssistantStep,
    ChildStep,
    CompactionStep,
    ErrorStep,
    ReasoningStep,
    RetryStep,
    RunEnded,
    ToolCallStep,
    ToolResultStep,
    Usage,
    UserStep,
)
from shared.messages import Message, ToolCall
from tests.support.scripted import Loop, calls, says


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


def heard_in(loop: Loop) -> list[str]:
    heard: list[str] = []
    bus = HookBus(lambda *_: None)
    bus.on("*", lambda event, context: heard.append(event.name))
    loop.agent = Agent(
        loop.model,
        loop.toolbox,
        ObservedRecorder(loop.recorder, bus),
        loop.controls,
        loop.limits,
        loop.clock,
        hooks=bus,
        guardrails=RuleSet(lambda *_: None, [Rule("witness", Witness(heard))]),
    )
    loop.run()
    return heard


def test_the_events_of_a_turn_come_in_the_order_of_the_rules() -> None:
    assert heard_in(Loop([calls("one", text="Let me see."), says("Done.")])) == [
        "guardrail.on_turn_start",
        "input",
        "before_agent_start",
        "context",
        "message_end",  # the prompt
        "agent_start",
        "turn_start",
        "ephemeral",
        "message_start",
        "message_update",
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
    ]


class Watched:
    """A recorder whose events are kept."""

    def __init__(self) -> None:
        self.events: list[HookEvent] = []
        self.kept = KeptEvents()
        self.bus = HookBus(lambda *_: None)
        self.bus.on("*", lambda event, context: self.events.append(event))
        self.recorder = ObservedRecorder(self.kept, self.bus, max_retries=3)

    def after(self, *bodies: Any) -> list[HookEvent]:
        for body in bodies:
            self.recorder.record(body)
        return self.events


RETRY = RetryStep(attempt=1, delay_s=2.5, error_class="rate_limit", error="429")
STARTED = RetryStart(1, 3, 2.5, "rate_limit")


def test_a_message_begins_with_its_first_piece_and_ends_whole_with_what_was_thought() -> None:
    watched = Watched()
    watched.recorder.delta("thinking", "Hm.")
    watched.recorder.delta("text", "Yes.")
    watched.after(ReasoningStep(text="Hm."), AssistantStep(text="Yes."))
    assert [event.name for event in watched.events] == ["message_start", *["message_update"] * 2, "message_end"]
    assert watched.events[1:] == [
        MessageUpdate("thinking", "Hm."),
        MessageUpdate("text", "Yes."),
        MessageEnd(Message(role="assistant", content="Yes.", thinking="Hm.")),
    ]


def test_an_answer_that_was_not_streamed_begins_and_ends_at_once() -> None:
    events = Watched().after(AssistantStep(text="Yes."))
    assert [event.name for event in events] == ["message_start", "message_end"]


def test_a_stream_that_is_repeated_begins_its_message_once() -> None:
    watched = Watched()
    watched.recorder.delta("text", "Y")
    watched.after(RETRY)
    watched.recorder.delta("text", "Yes.")
    watched.after(AssistantStep(text="Yes."))
    names = [event.name for event in watched.events]
    assert (names.count("message_start"), names.count("message_end")) == (1, 1)


def test_what_a_running_command_prints_belongs_to_its_call() -> None:
    watched = Watched()
    watched.after(ToolCallStep(call_id="c1", tool="shell", arguments={"command": "ls"}))
    watched.recorder.delta("output", "README")
    watched.after(ToolResultStep(call_id="c1", output="README", return_code=0))
    assert watched.events == [
        ToolExecutionStart("c1", "shell", {"command": "ls"}),
        ToolExecutionUpdate("c1", "README"),
        ToolExecutionEnd("c1", "README", 0, is_error=False),
        MessageEnd(Message(role="tool", tool_call_id="c1", content="README")),
    ]


def test_a_retry_ends_well_with_the_answer() -> None:
    events = Watched().after(RETRY, AssistantStep(text="Yes."))
    assert events[:2] == [STARTED, RetryEnd(1, success=True, error="")]


def test_a_retry_that_fails_ends_before_the_next_begins() -> None:
    again = RetryStep(attempt=2, delay_s=5, error_class="server", error="502")
    events = Watched().after(RETRY, again, ErrorStep(what="No answer.", detail="all"))
    assert events == [
        STARTED,
        RetryEnd(1, success=False, error="502"),
        RetryStart(2, 3, 5, "server"),
        RetryEnd(2, success=False, error="No answer."),
        AgentError("No answer.", "all"),
    ]


def test_a_retry_that_is_broken_off_ends_too() -> None:
    events = Watched().after(RETRY, RunEnded(status="preempted", exit_status="canceled", reason="stop"))
    assert events == [STARTED, RetryEnd(1, success=False, error="The call was interrupted.")]


def test_a_compaction_is_told_with_its_tokens() -> None:
    events = Watched().after(CompactionStep(summary="so far", tokens_before=900, tokens_after=100))
    assert events == [Compacted("so far", 900, 100)]


def test_an_extension_is_not_told_of_errors_of_extensions_nor_of_the_steps_of_children() -> None:
    assert Watched().after(ErrorStep(what="x", code="E-EXTENSION"), ChildStep(call_id="c", step={})) == []


def test_the_size_of_the_context_is_what_the_last_answer_or_compaction_came_to() -> None:
    recorder = Watched().recorder
    recorder.record(AssistantStep(usage=Usage(input_tokens=900, output_tokens=50)))
    assert recorder.context_tokens == 950
    recorder.record(CompactionStep(summary="so far", tokens_after=100))
    assert recorder.context_tokens == 100


def test_an_event_is_recorded_before_it_is_told() -> None:
    kept, bus, seen = KeptEvents(), HookBus(lambda *_: None), []
    bus.on("message_end", lambda event, context: seen.append(len(kept.bodies)))
    ObservedRecorder(kept, bus).record(UserStep(text="Do it."))
    assert seen == [1]


def test_where_nobody_listens_everything_is_only_passed_on() -> None:
    kept = KeptEvents()
    recorder = ObservedRecorder(kept, HookBus(lambda *_: None))
    recorder.delta("text", "Y")
    recorder.doing("nothing")
    assert (recorder.record(UserStep(text="Do it.")), kept.deltas, kept.now_doing) == (1, [("text", "Y")], "nothing")


def test_every_event_is_one_that_somebody_emits() -> None:
    from_loop = set(heard_in(Loop([calls("one"), says("Done.")])))
    watched = Watched()
    watched.recorder.delta("output", "x")
    watched.after(RETRY, ErrorStep(what="x"), CompactionStep(summary="x"), AssistantStep(text="x"))
    missing = set(EVENTS) - from_loop - {event.name for event in watched.events}
    # Emitted by the compaction, where one is about to begin.
    assert missing == {"session_before_compact"}
