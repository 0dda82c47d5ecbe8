"""How the events of a run look in a terminal, for `fleet follow` and for `drone run`."""

from __future__ import annotations

import pytest

from drone.local.progress import run_end_lines
from shared.events import (
    ApprovalStep,
    AssistantStep,
    Body,
    ChildStep,
    CompactionStep,
    DecisionStep,
    ErrorStep,
    GuardrailStep,
    RetryStep,
    RunEnded,
    Stats,
    TodoItem,
    TodoStep,
    ToolCallStep,
    ToolResultStep,
    UserStep,
    VerifyStep,
)
from shared.terminal.step_lines import event_lines


def texts(body: Body) -> list[str]:
    return [text for text, _ in event_lines(body)]


def child(body: Body) -> ChildStep:
    return ChildStep(call_id="c", step=body.model_dump(mode="json"))


@pytest.mark.parametrize(
    ("body", "first"),
    [
        (GuardrailStep(call_id="c", guardrail="loop", action="warn", reason="twice"), "! guardrail loop warned about"),
        (ApprovalStep(call_id="c", tool="shell", why="Deletes files"), "? approval required for shell: Deletes"),
        (DecisionStep(call_id="c", approved=False, by="clock"), "✗ denied: no answer before the deadline"),
        (DecisionStep(call_id="c", approved=True), "✓ approved"),
        (
            RetryStep(attempt=1, delay_s=12.0, error_class="rate_limit", error="slow down"),
            "! model call failed (rate_limit: slow down); retrying in 12.0 s",
        ),
        (ErrorStep(what="the disk is full"), "error: the disk is full"),
        (
            VerifyStep(attempt=1, command="make test", passed=True, return_code=0),
            "✓ check, attempt 1: make test passed",
        ),
        (
            CompactionStep(summary="s", tokens_before=9000, tokens_after=100),
            "· conversation compacted (context window nearly full): 9,000 → 100",
        ),
    ],
)
def test_each_kind_of_event_says_what_it_is(body: Body, first: str) -> None:
    assert texts(body)[0].startswith(first)


def test_a_list_of_things_to_do_is_a_checklist() -> None:
    items = (TodoItem(text="read", status="done"), TodoItem(text="mend", status="in_progress"), TodoItem(text="test"))
    assert texts(TodoStep(items=items)) == ["  ☑ read", "  ▶ mend", "  ☐ test"]


def test_a_failed_verification_shows_the_end_of_its_output() -> None:
    output = "\n".join(str(number) for number in range(40))
    shown = texts(VerifyStep(attempt=2, command="make test", passed=False, return_code=1, output=output))
    assert (shown[0], shown[-1], len(shown)) == ("✗ check, attempt 2: make test failed with exit code 1", "  39", 13)


def test_a_child_is_short_and_set_apart() -> None:
    assert texts(child(AssistantStep(text="a\nb\nc\nd"))) == ["  ┆ a", "  ┆ b", "  ┆ c", "  ┆ … 1 more line"]
    assert texts(child(ToolCallStep(call_id="k", tool="shell", arguments={"command": "ls"})))[0].startswith(
        "  ┆ → shell"
    )
    assert texts(child(UserStep(text="task", source="prompt"))) == []


def test_a_result_says_how_its_call_ended_and_then_shows_its_output() -> None:
    result = ToolResultStep(call_id="c", output="one\ntwo", return_code=1, duration_ms=1500)

    assert texts(result) == ["← exit 1, 1.5 s", "  one", "  two"]


def test_of_an_output_that_was_streamed_only_what_the_fleet_added_is_repeated() -> None:
    result = ToolResultStep(call_id="c", output="one\nended after 2 s", note="ended after 2 s", is_error=True)

    assert [text for text, _ in event_lines(result, streamed=True)] == ["← error, 0 ms", "  ended after 2 s"]


def test_a_price_that_is_not_known_is_never_shown_as_nothing() -> None:
    ended = RunEnded(status="success", exit_status="stopped", reason="done", stats=Stats(cost_usd=None))
    assert "price unknown" in run_end_lines(ended)[-1][0]


def test_what_people_need_not_see_has_no_lines() -> None:
    assert event_lines(UserStep(text="x", source="prompt")) == []
    assert event_lines(AssistantStep(text="streamed already"), streamed=True) == []
