"""How a run of `drone run` tells the person at the terminal what happens in it."""

from __future__ import annotations

import pytest

from drone.local.event_lines import lines_of
from shared.events import (
    ApprovalStep,
    AssistantStep,
    Body,
    ChildStep,
    CompactionStep,
    DecisionStep,
    GuardrailStep,
    RunEnded,
    Stats,
    TodoItem,
    TodoStep,
    ToolCallStep,
    UserStep,
    VerifyStep,
)


def texts(body: Body) -> list[str]:
    return [text for text, _ in lines_of(body) or []]


def child(body: Body) -> ChildStep:
    return ChildStep(call_id="c", step=body.model_dump(mode="json"))


@pytest.mark.parametrize(
    ("body", "first"),
    [
        (GuardrailStep(call_id="c", guardrail="loop", action="warn", reason="twice"), "! guardrail loop warned of"),
        (ApprovalStep(call_id="c", tool="shell", why="it removes files"), "? shell waits for a person: it removes"),
        (DecisionStep(call_id="c", approved=False, by="clock"), "✗ denied by the clock"),
        (DecisionStep(call_id="c", approved=True), "✓ approved"),
        (
            VerifyStep(attempt=1, command="make test", passed=True, return_code=0),
            "✓ verify, attempt 1: make test passed",
        ),
        (
            CompactionStep(summary="s", tokens_before=9000, tokens_after=100),
            "· the conversation was compacted: 9,000 → 100",
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
    assert (shown[0], shown[-1], len(shown)) == ("✗ verify, attempt 2: make test failed with exit code 1", "  39", 13)


def test_a_child_is_short_and_set_apart() -> None:
    assert texts(child(AssistantStep(text="a\nb\nc\nd"))) == ["  ┆ a", "  ┆ b", "  ┆ c"]
    assert texts(child(ToolCallStep(call_id="k", tool="shell", arguments={"command": "ls"})))[0].startswith(
        "  ┆ → shell"
    )
    assert texts(child(UserStep(text="task", source="prompt"))) == []


def test_a_price_that_is_not_known_is_never_shown_as_nothing() -> None:
    ended = RunEnded(status="success", exit_status="stopped", reason="done", stats=Stats(cost_usd=None))
    assert "cost unknown" in texts(ended)[-1]


def test_what_people_need_not_see_has_no_lines_and_ends_nothing_in_flight() -> None:
    assert lines_of(UserStep(text="x", source="prompt")) is None
    assert lines_of(AssistantStep(text="streamed already")) == []
