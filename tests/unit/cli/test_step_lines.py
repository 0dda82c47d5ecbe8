"""How the events of a run look in a terminal, for `fleet follow` and for `drone run`."""

from __future__ import annotations

from drone.local.progress import run_end_lines
from shared.events import (
    ApprovalStep,
    AssistantStep,
    Body,
    ChildStep,
    CompactionStep,
    DecisionStep,
    ErrorStep,
    Finding,
    GuardrailStep,
    RememberStep,
    RetryStep,
    ReviewerStep,
    RunEnded,
    Stats,
    TodoItem,
    TodoStep,
    ToolCallStep,
    ToolResultStep,
    UserStep,
    VerifyStep,
)
from shared.terminal.step_lines import FoldedCalls, event_lines


def texts(body: Body) -> list[str]:
    return [text for text, _ in event_lines(body)]


def child(body: Body) -> ChildStep:
    return ChildStep(call_id="c", step=body.model_dump(mode="json"))


def test_each_kind_of_event_says_what_it_is() -> None:
    cases: list[tuple[Body, str]] = [
        (GuardrailStep(call_id="c", guardrail="loop", action="warn", reason="twice"), "! guardrail loop warned about"),
        (ApprovalStep(call_id="c", tool="shell", why="Deletes files"), "? approval required for shell: Deletes"),
        (DecisionStep(call_id="c", approved=False, by="clock"), "✗ denied: no answer before the deadline"),
        (DecisionStep(call_id="c", approved=True), "✓ approved"),
        (
            RetryStep(attempt=1, delay_s=12.0, error_class="rate_limit", error="slow down"),
            "! model call failed (rate_limit: slow down); retrying in 12.0 s",
        ),
        (ErrorStep(what="the disk is full"), "error: the disk is full"),
        (TodoStep(items=(TodoItem(text="mend", status="in_progress"),)), "  ▶ mend"),
        (
            VerifyStep(attempt=1, command="make test", passed=True, return_code=0),
            "✓ verify, attempt 1: make test passed",
        ),
        (RememberStep(text="Use make"), "✎ proposes a note: Use make"),
        (ReviewerStep(model="openai/mini"), "✎ reviewed by openai/mini: no remarks"),
        (
            ReviewerStep(model="openai/mini", findings=(Finding(file="a.py", line=3, text="Wrong."),), repeated=True),
            "✎ reviewed by openai/mini: 1 remark (from the earlier run)",
        ),
        (ReviewerStep(model="openai/mini", problem="no answer"), "! not reviewed by openai/mini: no answer"),
        (
            CompactionStep(summary="s", tokens_before=9000, tokens_after=100),
            "· conversation compacted (context window nearly full): 9,000 → 100",
        ),
    ]
    assert [(body, first) for body, first in cases if not texts(body)[0].startswith(first)] == []


def test_a_child_is_short_and_set_apart() -> None:
    assert texts(child(AssistantStep(text="a\nb\nc\nd"))) == ["  ┆ a", "  ┆ b", "  ┆ c", "  ┆ … 1 more line"]
    assert texts(child(ToolCallStep(call_id="k", tool="shell", arguments={"command": "ls"})))[0].startswith(
        "  ┆ → shell: ls"
    )
    silent = UserStep(text="task", source="prompt")
    assert texts(child(silent)) == texts(silent) == texts(AssistantStep(text="\n")) == []


def folded(*bodies: Body, outputs: bool = False) -> list[str]:
    calls = FoldedCalls(outputs=outputs)
    lines = [line for body in bodies for line in calls.lines(body)]
    return [text for text, _ in [*lines, *calls.left_open()]]


def called(call_id: str = "c") -> ToolCallStep:
    return ToolCallStep(call_id=call_id, tool="shell", arguments={"command": "make test"})


def test_a_call_and_its_result_are_one_line() -> None:
    done = ToolResultStep(call_id="c", output="one\ntwo", return_code=0, duration_ms=1500)
    assert folded(called(), done) == ["✓ shell: make test (1.5 s)"]
    assert folded(called(), done, outputs=True) == ["✓ shell: make test (1.5 s)", "  one", "  two"]
    assert folded(called()) == ["→ shell: make test (no result)"]


def test_a_call_that_failed_shows_the_last_lines_of_its_output_and_how_many_came_before() -> None:
    output = "\n".join(str(number) for number in range(1_839)) + "\n\n"
    failed = ToolResultStep(call_id="c", output=output, return_code=1, duration_ms=20)
    shown = folded(called(), failed)
    assert shown[:2] == ["✗ shell: make test (exit 1, 20 ms)", "  … 1,819 earlier lines"]
    assert (shown[2], shown[-1], len(shown)) == ("  1819", "  1838", 22)


def test_a_call_takes_one_line_of_a_terminal_and_says_how_it_ended() -> None:
    for width in (20, 28, 80):
        calls = FoldedCalls(width=width)
        done = ToolResultStep(call_id="c", output="", return_code=1, duration_ms=1500)
        asked = ApprovalStep(call_id="c", tool="shell", why="Deletes files")
        call = ToolCallStep(
            call_id="c", tool="shell", arguments={"command": "make test and everything else that there is"}
        )
        lines = [text for body in (call, asked, done) for text, _ in calls.lines(body)]
        first, last = lines[0], lines[-1]
        assert max(len(first), len(last)) <= width, width
        assert (first[:7], last[:3], last[-16:]) == ("→ shell", "✗ s", "(exit 1, 1.5 s)".rjust(16)), width
        assert ("…" in last) == (width < 80), width


def test_calls_that_run_at_the_same_time_keep_their_own_results() -> None:
    results = [ToolResultStep(call_id=each, output="", return_code=code) for each, code in (("b", 1), ("a", 0))]
    first, second = called("a"), ToolCallStep(call_id="b", tool="read_file", arguments={"path": "x"})
    assert folded(first, second, *results) == ["✗ read_file: path=x (exit 1, 0 ms)", "✓ shell: make test (0 ms)"]


def test_what_belongs_to_a_call_that_runs_comes_below_its_line() -> None:
    asked = ApprovalStep(call_id="c", tool="shell", why="Deletes files")
    shown = folded(
        called(), asked, child(AssistantStep(text="inner")), ToolResultStep(call_id="c", output="", return_code=0)
    )
    assert shown[0] == "→ shell: make test"
    assert (shown[2:], len(shown)) == (["  ┆ inner", "✓ shell: make test (0 ms)"], 4)


def test_a_price_that_is_not_known_is_never_shown_as_nothing() -> None:
    ended = RunEnded(status="success", exit_status="stopped", reason="done", stats=Stats(cost_usd=None))
    assert "price unknown" in run_end_lines(ended)[-1][0]
