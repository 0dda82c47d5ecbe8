"""What a drone's worker counts of the events of its runs."""

from __future__ import annotations

from datetime import UTC, datetime

from prometheus_client import CollectorRegistry, generate_latest

from drone.metrics.event_counts import EventCounts
from shared import events
from tests.support.metrics import figure, series_in

ANSWER = events.AssistantStep(text="Done.", usage=events.Usage(input_tokens=5, output_tokens=2), duration_ms=3000)
RETRY = events.RetryStep(attempt=1, delay_s=1.0, error_class="rate_limit", error="too many requests")


def counted(*bodies: events.Body, times: int = 1) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """The figures after the events of one run, each passed on `times` times."""
    registry = CollectorRegistry()
    count = EventCounts(registry).of_run()
    for seq, body in enumerate(bodies, 1):
        event = events.Event(run_id="r", order_id="o", generation=1, seq=seq, at=datetime.now(UTC), body=body)
        for _ in range(times):
            count(event)
    return series_in(generate_latest(registry).decode())


def calls(found: dict[tuple[str, tuple[tuple[str, str], ...]], float]) -> tuple[float, float]:
    """Answered and failed calls of models."""
    answered, failed = (figure(found, "drone_model_calls_total", outcome=each) for each in ("answered", "failed"))
    return answered, failed


def test_an_answer_counts_once_with_its_time_and_its_tokens_and_so_does_each_failed_attempt() -> None:
    found = counted(ANSWER)
    assert calls(found) == (1, 0)
    assert figure(found, "drone_model_call_seconds_sum") == 3
    assert figure(found, "drone_model_call_seconds_bucket", le="5.0") == 1
    assert figure(found, "drone_model_call_seconds_bucket", le="2.0") == 0
    assert figure(found, "drone_tokens_total", kind="input") == 5
    assert calls(counted(ANSWER, RETRY, ANSWER, times=3)) == (2, 1)
    end = events.RunEnded(status="failed", exit_status="model_error", reason="no answer")
    found = counted(events.ChargeStep(about="broken_off", usage=events.Usage(input_tokens=9)), RETRY, RETRY, end)
    assert (calls(found), figure(found, "drone_tokens_total", kind="input")) == ((0, 3), 9)


def test_summaries_reviews_and_answers_of_child_agents_count() -> None:
    child = events.ChildStep(call_id="a", step=ANSWER.model_dump(mode="json"))
    review = events.ReviewerStep(usage=events.Usage(input_tokens=1), duration_ms=10)
    not_counted = (
        events.ReviewerStep(problem="no answer"),
        events.ReviewerStep(repeated=True),
        events.ChildStep(call_id="a", step={"kind": "unheard-of"}),
    )
    assert calls(counted(*not_counted)) == (0, 0)
    assert calls(counted(*not_counted, child, review, events.ChargeStep(about="summary"))) == (3, 0)


def test_a_call_of_a_tool_counts_by_its_outcome_and_only_built_in_tools_have_a_series_of_their_own() -> None:
    cases: list[tuple[str, dict[str, object], str, str]] = [
        ("shell", {}, "shell", "ok"),
        ("mcp__github__search", {}, "mcp", "ok"),
        ("made-up by a model", {}, "other", "ok"),
        ("shell", {"execution": "answered", "is_error": True}, "shell", "error"),
        ("shell", {"execution": "timed_out", "is_error": True}, "shell", "timed_out"),
        ("shell", {"execution": "broken_off"}, "shell", "broken_off"),
        ("shell", {"execution": "held_back", "is_error": True}, "shell", "held_back"),
    ]
    for tool, fields, shown, outcome in cases:
        result = events.ToolResultStep.model_validate({"call_id": "a", "output": "", **fields})
        found = counted(events.ToolCallStep(call_id="a", tool=tool), result)
        assert figure(found, "drone_tool_calls_total", tool=shown, outcome=outcome) == 1
