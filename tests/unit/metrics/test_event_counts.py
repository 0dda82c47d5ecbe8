"""What a drone's worker counts of the events of its runs."""

from __future__ import annotations

from datetime import UTC, datetime

from prometheus_client import CollectorRegistry, generate_latest

from drone.metrics.event_counts import EventCounts
from shared.events import (
    AssistantStep,
    Body,
    ChargeStep,
    ChildStep,
    Event,
    RetryStep,
    ReviewerStep,
    RunEnded,
    ToolCallStep,
    ToolResultStep,
    Usage,
)
from tests.support.metrics import figure, series_in

ANSWER = AssistantStep(text="Done.", usage=Usage(input_tokens=5, output_tokens=2), duration_ms=3000)
RETRY = RetryStep(attempt=1, delay_s=1.0, error_class="rate_limit", error="too many requests")


def counted(*bodies: Body, times: int = 1) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """The figures after the events of one run, each passed on `times` times."""
    registry = CollectorRegistry()
    count = EventCounts(registry).of_run()
    for seq, body in enumerate(bodies, 1):
        event = Event(run_id="r", order_id="o", generation=1, seq=seq, at=datetime.now(UTC), body=body)
        for _ in range(times):
            count(event)
    return series_in(generate_latest(registry).decode())


def calls(found: dict[tuple[str, tuple[tuple[str, str], ...]], float]) -> tuple[float, float]:
    """Answered and failed calls of models."""
    answered, failed = (figure(found, "drone_model_calls_total", outcome=each) for each in ("answered", "failed"))
    return answered, failed


def test_an_answer_counts_with_its_time_and_its_tokens() -> None:
    found = counted(ANSWER)
    assert calls(found) == (1, 0)
    assert figure(found, "drone_model_call_seconds_sum") == 3
    assert figure(found, "drone_model_call_seconds_bucket", le="5.0") == 1
    assert figure(found, "drone_model_call_seconds_bucket", le="2.0") == 0
    assert figure(found, "drone_tokens_total", kind="input") == 5


def test_an_event_that_is_passed_on_again_counts_once() -> None:
    assert calls(counted(ANSWER, RETRY, ANSWER, times=3)) == (2, 1)


def test_each_failed_attempt_counts_and_the_last_one_with_the_end_of_the_run() -> None:
    end = RunEnded(status="failed", exit_status="model_error", reason="no answer")
    broken = ChargeStep(about="broken_off", usage=Usage(input_tokens=9))
    found = counted(broken, RETRY, RETRY, end)
    assert calls(found) == (0, 3)
    assert figure(found, "drone_tokens_total", kind="input") == 9


def test_summaries_reviews_and_answers_of_child_agents_count() -> None:
    child = ChildStep(call_id="a", step=ANSWER.model_dump(mode="json"))
    review = ReviewerStep(usage=Usage(input_tokens=1), duration_ms=10)
    not_counted = (
        ReviewerStep(problem="no answer"),
        ReviewerStep(repeated=True),
        ChildStep(call_id="a", step={"kind": "unheard-of"}),
    )
    assert calls(counted(*not_counted)) == (0, 0)
    assert calls(counted(*not_counted, child, review, ChargeStep(about="summary"))) == (3, 0)


def test_only_built_in_tools_have_a_series_of_their_own() -> None:
    for tool, shown in (("shell", "shell"), ("mcp__github__search", "mcp"), ("made-up by a model", "other")):
        found = counted(ToolCallStep(call_id="a", tool=tool), ToolResultStep(call_id="a", output=""))
        assert figure(found, "drone_tool_calls_total", tool=shown, outcome="ok") == 1


def test_a_call_of_a_tool_counts_by_its_outcome() -> None:
    cases: list[tuple[dict[str, object], str]] = [
        ({"execution": "answered", "is_error": True}, "error"),
        ({"execution": "timed_out", "is_error": True}, "timed_out"),
        ({"execution": "broken_off"}, "broken_off"),
        ({"execution": "held_back", "is_error": True}, "held_back"),
    ]
    for fields, outcome in cases:
        result = ToolResultStep.model_validate({"call_id": "a", "output": "", **fields})
        found = counted(ToolCallStep(call_id="a", tool="shell"), result)
        assert figure(found, "drone_tool_calls_total", tool="shell", outcome=outcome) == 1
