"""The spans below a run, from events with known times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from control_plane.tracing.model_calls import chat_attributes
from control_plane.tracing.run_spans import RunSpans, TracedRun, TracedStep, body_of
from control_plane.tracing.spans import TraceSpan, span_id
from shared.events import (
    ApprovalStep,
    AssistantStep,
    ChargeStep,
    CheckpointStep,
    ChildStep,
    CompactionStep,
    Delivered,
    ErrorStep,
    Phase,
    RetryStep,
    ReviewerStep,
    ToolCallStep,
    ToolResultStep,
    Usage,
    VerifyStep,
)

BEGAN = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
RUN = span_id("run")
WORKING = Phase(name="working")
COMMIT = "a" * 40


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


def call(call_id: str, tool: str = "shell") -> ToolCallStep:
    return ToolCallStep(call_id=call_id, tool=tool, arguments={})


def result(call_id: str, ms: int, **fields: Any) -> ToolResultStep:
    return ToolResultStep(call_id=call_id, output="ok", duration_ms=ms, **fields)


def test_phases_follow_each_other_from_the_first_event_to_the_end() -> None:
    spans = spans_of(
        (1, Phase(name="preparing")), (5, WORKING), (40, Phase(name="delivering")), (60, Delivered(pushed=True))
    )
    assert times(spans) == [
        ("starting", 0, 1),
        ("preparing", 1, 5),
        ("working", 5, 40),
        ("delivering", 40, 60),
        ("ending", 60, 100),
    ]
    assert {each.parent for each in spans} == {RUN}
    assert only(spans, "delivering").attributes["dronefleet.delivery.pushed"] is True


def test_work_continues_after_a_command_that_verified_it() -> None:
    failed = VerifyStep(attempt=1, command="make test", passed=False, return_code=2, duration_ms=9000)
    spans = spans_of((0, WORKING), (10, Phase(name="verifying", detail="make test")), (20, failed))
    assert times(spans)[1:] == [("working", 0, 10), ("verifying", 10, 20), ("working", 20, 100)]
    verifying = only(spans, "verifying")
    assert (verifying.error, verifying.attributes["dronefleet.return_code"]) == ("verification_failed", 2)


def test_a_check_without_a_phase_is_a_part_of_the_work() -> None:
    spans = spans_of((0, WORKING), (20, VerifyStep(attempt=1, command="", passed=True, duration_ms=3000)))
    assert times(spans, "verify") == [("verify", 17, 20)]
    assert only(spans, "verify").parent == only(spans, "working").id


def test_a_model_call_has_what_the_conventions_ask_for() -> None:
    usage = Usage(input_tokens=70, output_tokens=8, thinking_tokens=3, cached_tokens=60, cost_usd=0.25)
    answer = AssistantStep(
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


def test_providers_have_the_names_of_the_conventions_where_there_are_such() -> None:
    named = [
        chat_attributes(model, "s1", Usage())
        for model in ("azure/x", "bedrock/a/b", "openai/gpt", "openrouter/x/y", "gpt-5")
    ]
    assert [(each["gen_ai.provider.name"], each["gen_ai.request.model"]) for each in named] == [
        ("azure.ai.openai", "x"),
        ("aws.bedrock", "a/b"),
        ("openai", "gpt"),
        ("openrouter", "x/y"),
        ("litellm", "gpt-5"),
    ]


def test_a_call_that_failed_lasted_since_the_last_event_and_the_pause_until_the_next_one() -> None:
    retry = RetryStep(attempt=1, delay_s=5, error_class="rate_limit", error="slow down")
    spans = spans_of((0, WORKING), (7, retry), (30, AssistantStep(duration_ms=18_000)))
    assert times(spans, "chat gpt-5", "retry pause") == [
        ("chat gpt-5", 0, 7),
        ("retry pause", 7, 12),
        ("chat gpt-5", 12, 30),
    ]
    assert [each.error for each in spans if each.name == "chat gpt-5"] == ["rate_limit", ""]


def test_a_pause_ends_with_the_next_event_if_that_comes_first() -> None:
    retry = RetryStep(attempt=1, delay_s=1e12, error_class="rate_limit", error="slow down")
    spans = spans_of((0, WORKING), (7, retry), (9, Phase(name="delivering")))
    assert times(spans, "retry pause") == [("retry pause", 7, 9)]


def test_an_answer_that_broke_off_is_one_call_and_not_two() -> None:
    charge = ChargeStep(about="broken_off", model="openai/gpt-5", usage=Usage(input_tokens=9))
    retry = RetryStep(attempt=1, delay_s=1, error_class="server", error="cut off")
    spans = spans_of((0, WORKING), (7, charge), (7, retry), (20, AssistantStep(duration_ms=12_000)))
    assert times(spans, "chat gpt-5") == [("chat gpt-5", 0, 7), ("chat gpt-5", 8, 20)]


def test_the_last_failure_of_a_call_is_a_call_and_other_errors_are_none() -> None:
    failed = ErrorStep(what="The model does not answer.", code="E-MODEL-502")
    spans = spans_of((0, WORKING), (7, failed), (8, ErrorStep(what="Something else.", code="E-GIT")))
    assert [(each.name, each.error) for each in spans if each.kind == "client"] == [("chat gpt-5", "model_error")]


def test_calls_that_run_at_the_same_time_end_when_each_was_complete() -> None:
    events = [(0, WORKING), (10, call("a")), (10, call("b")), (20, result("a", 10_000)), (20, result("b", 4000))]
    assert times(spans_of(*events), "execute_tool shell") == [
        ("execute_tool shell", 10, 14),
        ("execute_tool shell", 10, 20),
    ]


def test_a_call_that_ended_badly_says_how() -> None:
    results = (
        result("a", 1000, return_code=1),
        result("b", 1000, is_error=True, execution="answered"),
        result("c", 1000, is_error=True, execution="timed_out"),
    )
    events = [(0, WORKING), *((10, call(each)) for each in "abc"), *((20 + n, each) for n, each in enumerate(results))]
    found = {each.attributes["gen_ai.tool.call.id"]: each.error for each in spans_of(*events) if "tool" in each.name}
    assert found == {"a": "", "b": "tool_error", "c": "timed_out"}


def test_steps_of_a_child_agent_are_below_the_call_that_started_it() -> None:
    def child(body: Any) -> ChildStep:
        return ChildStep(call_id="a", step=body.model_dump(mode="json"))

    answer = child(AssistantStep(model="openai/small", duration_ms=3000))
    events = [
        (0, WORKING),
        (10, call("a", "spawn")),
        (20, answer),
        (21, child(call("a1"))),
        (25, child(result("a1", 4000))),
    ]
    spans = spans_of(*events, (30, result("a", 20_000)))
    spawn = only(spans, "execute_tool spawn")
    assert times(spans, "chat small", "execute_tool shell") == [("chat small", 17, 20), ("execute_tool shell", 21, 25)]
    assert {only(spans, "chat small").parent, only(spans, "execute_tool shell").parent} == {spawn.id}


def test_a_checkpoint_is_taken_beside_the_next_question() -> None:
    checkpoint = CheckpointStep(commit=COMMIT, bundle_bytes=512)
    events = [(0, WORKING), (10, call("a")), (20, result("a", 10_000)), (22, checkpoint)]
    spans = spans_of(*events, (30, AssistantStep(duration_ms=10_000)))
    assert times(spans, "checkpoint", "chat gpt-5") == [("checkpoint", 20, 22), ("chat gpt-5", 20, 30)]


def test_a_checkpoint_that_changed_nothing_took_no_time() -> None:
    spans = spans_of((0, WORKING), (22, CheckpointStep(commit=COMMIT, changed=False)))
    assert times(spans, "checkpoint") == []


def test_a_compaction_and_the_review_are_seen_with_their_calls() -> None:
    compaction = CompactionStep(summary="secret", tokens_before=900, tokens_after=100)
    summary = ChargeStep(about="summary", model="openai/gpt-5", usage=Usage(input_tokens=900))
    review = ReviewerStep(provider="p", model="openai/strict", duration_ms=5000)
    spans = spans_of((0, WORKING), (10, summary), (11, compaction), (30, review))
    assert times(spans, "chat gpt-5", "compaction", "chat strict") == [
        ("chat gpt-5", 0, 10),
        ("compaction", 10, 11),
        ("chat strict", 25, 30),
    ]
    assert only(spans, "compaction").attributes["dronefleet.compaction.tokens_before"] == 900
    assert only(spans, "chat strict").attributes["dronefleet.chat.purpose"] == "review"


def test_what_a_killed_run_was_doing_ends_when_its_drone_was_last_heard_of() -> None:
    asked = ApprovalStep(call_id="a", tool="shell", why="risky")
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
        (50, AssistantStep(duration_ms=20_000)),
        (300, CompactionStep(summary="")),
    ]
    spans = spans_of(*events)
    by_id = {each.id: each for each in spans}
    for each in spans:
        parent = by_id.get(each.parent)
        first, last = (parent.began, parent.ended) if parent else (BEGAN, at(100))
        assert first <= each.began <= each.ended <= last


def test_events_that_this_version_cannot_read_are_passed_over() -> None:
    unknown = body_of({"kind": "of a later version"})
    assert unknown is None
    assert times(spans_of((0, WORKING), (10, unknown))) == [("starting", 0, 0), ("working", 0, 100)]


def test_ids_are_the_same_whenever_a_trace_is_built() -> None:
    events = [(0, WORKING), (10, call("a")), (20, result("a", 10_000)), (30, AssistantStep(duration_ms=10_000))]
    assert spans_of(*events) == spans_of(*events)
    ids = [each.id for each in spans_of(*events)]
    assert len(set(ids)) == len(ids)
