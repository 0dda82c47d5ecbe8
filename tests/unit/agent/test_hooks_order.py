"""The events of a whole turn: each once, in the order of the rules (O-010, O-040, O-046, O-053), with its payload."""

from __future__ import annotations

from typing import Any

from drone.agent.agent import Agent
from drone.agent.guardrails.rule_set import Rule, RuleSet
from drone.agent.hooks.bus import HookBus
from drone.agent.hooks.events import (
    EVENTS,
    AgentEnd,
    AgentError,
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
from shared.errors import Preempted
from shared.events import (
    AssistantStep,
    ChildStep,
    CompactionStep,
    ErrorStep,
    ReasoningStep,
    RetryStep,
    ToolCallStep,
    ToolResultStep,
    Usage,
)
from shared.messages import Message, ToolCall
from shared.outcome import ExitStatus, Outcome
from shared.work_order import Limits
from tests.support.compactions import Compacting, long_conversation
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
    heard = hearing(loop)
    loop.run()
    return heard


def hearing(loop: Loop, events: list[HookEvent] | None = None) -> list[str]:
    """Give the loop an agent with extensions; returns the names of the events to come, `events` gets them whole."""
    heard: list[str] = []
    bus = HookBus(lambda *_: None)
    bus.on("*", lambda event, context: heard.append(event.name))
    bus.on("*", lambda event, context: events.append(event) if events is not None else None)
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
    return heard


def test_the_events_of_a_turn_come_in_the_order_of_the_rules() -> None:
    assert heard_in(Loop([calls("one", text="Let me see."), says("Done.")])) == [
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
    assert [event.outcome for event in events if isinstance(event, AgentEnd)] == [STOPPED]


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
        assert [event.outcome.exit_status for event in events if isinstance(event, AgentEnd)] == [ends]
    never = Loop([])
    heard = hearing(never)
    never.agent.end(STOPPED)
    assert heard == []


def test_a_run_that_leaves_messages_unread_has_not_settled() -> None:
    loop = Loop([calls("one")], Limits(max_iterations=1))
    heard = hearing(loop)
    loop.toolbox.on_call = lambda _: setattr(loop.controls, "to_follow_up", ["And then?"])
    loop.run()
    assert heard[-4:] == [*ENDING[:3], "session_shutdown"]


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


def test_a_retry_that_fails_ends_before_the_next_begins() -> None:
    watched, again = Watched(), RetryStep(attempt=2, delay_s=5, error_class="server", error="502")
    # Extensions are told neither of their own errors nor of the steps of children.
    watched.after(ErrorStep(what="x", code="E-EXTENSION"), ChildStep(call_id="c", step={}))
    events = watched.after(RETRY, again, ErrorStep(what="No answer.", detail="all"))
    assert events == [
        STARTED,
        RetryEnd(1, success=False, error="502"),
        RetryStart(2, 3, 5, "server"),
        RetryEnd(2, success=False, error="No answer."),
        AgentError("No answer.", "all"),
    ]


def test_the_size_of_the_context_is_what_the_last_answer_or_compaction_came_to() -> None:
    watched = Watched()
    recorded: list[int] = []
    # An event is recorded before it is told.
    watched.bus.on("message_end", lambda event, context: recorded.append(len(watched.kept.bodies)))
    watched.after(AssistantStep(usage=Usage(input_tokens=900, output_tokens=50)))
    assert (watched.recorder.context_tokens, recorded) == (950, [1])
    watched.after(CompactionStep(summary="so far", tokens_after=100))
    assert watched.recorder.context_tokens == 100


def test_every_event_is_one_that_somebody_emits() -> None:
    loop = Loop([calls("one"), says("Done.")])
    loop.controls.to_steer = ["Mind the tests."]
    from_loop = set(heard_in(loop))
    watched = Watched()
    watched.recorder.delta("output", "x")
    watched.after(RETRY, ErrorStep(what="x"), CompactionStep(summary="x"), AssistantStep(text="x"))
    missing = set(EVENTS) - from_loop - {event.name for event in watched.events}
    # Emitted by the compaction, where one is about to begin.
    assert missing == {"session_before_compact"}
