"""The spans below a run, from events with known times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from control_plane.telemetry.tracing.run_spans import RunSpans, TracedRun, TracedStep
from control_plane.telemetry.tracing.spans import TraceSpan, span_id
from shared import events as steps

BEGAN = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
RUN = span_id("run")
WORKING = steps.Phase(name="working")


def at(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def spans_of(*events: tuple[float, Any], ended: float = 100, silent_since: float | None = None) -> list[TraceSpan]:
    """The spans of a run that lasts for `ended` seconds; each event has its time in seconds."""
    silence = at(silent_since) if silent_since is not None else None
    run = RunSpans(TracedRun("r1", RUN, BEGAN, at(ended), "openai/gpt-5", "s1", silence))
    for seq, (second, body) in enumerate(events, 1):
        run.take(TracedStep(seq, at(second), body))
    return run.end()


def times(spans: list[TraceSpan], *names: str) -> list[tuple[str, float, float]]:
    """Name, beginning and end in seconds of the spans with these names, or of all, in order."""
    chosen = [each for each in spans if not names or each.name in names]
    seconds = [
        (each.name, (each.began - BEGAN).total_seconds(), (each.ended - BEGAN).total_seconds()) for each in chosen
    ]
    return sorted(seconds, key=lambda each: each[1:])


def only(spans: list[TraceSpan], name: str) -> TraceSpan:
    [found] = [each for each in spans if each.name == name]
    return found


def call(call_id: str, tool: str = "shell") -> steps.ToolCallStep:
    return steps.ToolCallStep(call_id=call_id, tool=tool, arguments={})


def result(call_id: str, ms: int, **fields: Any) -> steps.ToolResultStep:
    return steps.ToolResultStep(call_id=call_id, output="ok", duration_ms=ms, **fields)


def test_phases_follow_each_other_from_the_first_event_to_the_end() -> None:
    preparing, delivering = (steps.Phase(name=name) for name in ("preparing", "delivering"))
    spans = spans_of((1, preparing), (5, WORKING), (40, delivering), (60, steps.Delivered(pushed=True)))
    phases = [("starting", 0, 1), ("preparing", 1, 5), ("working", 5, 40), ("delivering", 40, 60), ("ending", 60, 100)]
    assert times(spans) == phases
    assert {each.parent for each in spans} == {RUN}
    assert only(spans, "delivering").attributes["dronefleet.delivery.pushed"] is True
    # Work continues after a command that verified it.
    failed = steps.VerifyStep(attempt=1, command="make test", passed=False, return_code=2, duration_ms=9000)
    spans = spans_of((0, WORKING), (10, steps.Phase(name="verifying", detail="make test")), (20, failed))
    assert times(spans)[1:] == [("working", 0, 10), ("verifying", 10, 20), ("working", 20, 100)]
    verifying = only(spans, "verifying")
    assert (verifying.error, verifying.attributes["dronefleet.return_code"]) == ("verification_failed", 2)


def test_a_model_call_has_what_the_conventions_ask_for() -> None:
    usage = steps.Usage(input_tokens=70, output_tokens=8, thinking_tokens=3, cached_tokens=60, cost_usd=0.25)
    answer = steps.AssistantStep(
        text="secret", model="anthropic/claude-x", usage=usage, finish_reason="stop", duration_ms=4000
    )
    chat = only(spans_of((0, WORKING), (10, answer)), "chat claude-x")
    assert (chat.kind, chat.began, chat.ended) == ("client", at(6), at(10))
    assert chat.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-x",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.conversation.id": "s1",
        "gen_ai.usage.input_tokens": 70,
        "gen_ai.usage.output_tokens": 8,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.usage.reasoning.output_tokens": 3,
        "dronefleet.cost_usd": 0.25,
    }
    # One that failed lasted since the last event, and the pause until the next one.
    retry = steps.RetryStep(attempt=1, delay_s=5, error_class="rate_limit", error="slow down")
    spans = spans_of((0, WORKING), (7, retry), (30, steps.AssistantStep(duration_ms=18_000)))
    failed, pause, answered = ("chat gpt-5", 0, 7), ("retry pause", 7, 12), ("chat gpt-5", 12, 30)
    assert times(spans, "chat gpt-5", "retry pause") == [failed, pause, answered]
    assert [each.error for each in spans if each.name == "chat gpt-5"] == ["rate_limit", ""]


def test_steps_of_a_child_agent_are_below_the_call_that_started_it() -> None:
    def child(body: Any) -> steps.ChildStep:
        return steps.ChildStep(call_id="a", step=body.model_dump(mode="json"))

    answer = child(steps.AssistantStep(model="openai/small", duration_ms=3000))
    events = [(0, WORKING), (10, call("a", "spawn")), (20, answer), (21, child(call("a1")))]
    spans = spans_of(*events, (25, child(result("a1", 4000))), (30, result("a", 20_000)))
    spawn = only(spans, "execute_tool spawn")
    assert times(spans, "chat small", "execute_tool shell") == [("chat small", 17, 20), ("execute_tool shell", 21, 25)]
    assert {only(spans, "chat small").parent, only(spans, "execute_tool shell").parent} == {spawn.id}


def test_what_a_killed_run_was_doing_ends_when_its_drone_was_last_heard_of() -> None:
    asked = steps.ApprovalStep(call_id="a", tool="shell", why="risky")
    spans = spans_of((0, WORKING), (10, call("a")), (12, asked), silent_since=40)
    assert times(spans)[1:] == [
        ("working", 0, 40),
        ("execute_tool shell", 10, 40),
        ("wait for user", 12, 40),
        ("no heartbeat", 40, 100),
    ]
    assert {only(spans, "execute_tool shell").error, only(spans, "wait for user").error} == {"unfinished"}


def test_no_span_leaves_its_parent_when_events_come_in_a_burst_or_out_of_time() -> None:
    events = [
        (50, WORKING),
        (49, call("a")),
        (50, result("a", 30_000)),
        (50, steps.AssistantStep(duration_ms=20_000)),
        (300, steps.CompactionStep(summary="")),
    ]
    spans = spans_of(*events)
    by_id = {each.id: each for each in spans}
    assert (len(by_id), spans_of(*events)) == (len(spans), spans), "ids are the same whenever a trace is built"
    for each in spans:
        parent = by_id.get(each.parent)
        first, last = (parent.began, parent.ended) if parent else (BEGAN, at(100))
        assert first <= each.began <= each.ended <= last
