"""How orders and steps look in a terminal."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from control_plane.cli.live import follow_as_json, follow_as_text
from control_plane.cli.rendering import money, order_text, outcome_text, step_lines

STATS = {
    "tool_calls": 2,
    "input_tokens": 30,
    "thinking_tokens": 0,
    "output_tokens": 12,
    "cost_usd": None,
    "duration_ms": 1500,
    "duration_label": "1.5 s",
}
ORDER: dict[str, Any] = {
    "id": "a1b2c3d4e5f6",
    "status": "succeeded",
    "reason": "the model submitted its work",
    "drone": "mila",
    "attempt": 1,
    "project": "demo",
    "session": "0123456789ab",
    "mode": "build",
    "model": "openai/scripted",
    "provider": "scripted",
    "prompt": "Fix it",
    "branch": "fleet/a1b2c3d4e5f6",
    "head_commit": "c0ffee" * 6,
    "pushed": True,
    "push_error": None,
    "patch": "diff",
    "receipt": None,
    "ended_at": "2026-01-01T00:00:00Z",
    "stats": STATS,
    "runs": [],
    "steps": [],
}


class Following:
    """A stream of events as the client gives it."""

    def __init__(self, *events: tuple[str, dict[str, Any]]) -> None:
        self._events = events

    def follow(self, _order_id: str) -> Any:
        return iter(self._events)


def call(output: str, **fields: Any) -> dict[str, Any]:
    return {"seq": 1, "kind": "tool_result", "output": output, "return_code": 0, "is_error": False, **fields}


def test_an_unknown_price_is_never_shown_as_nothing() -> None:
    assert "unknown" in money(None)
    assert money(0.0) == "$0.0000"
    assert "unknown" in outcome_text(ORDER)


def test_a_branch_that_was_not_pushed_says_why() -> None:
    text = outcome_text({**ORDER, "pushed": False, "push_error": "the remote refused it"})

    assert "not pushed: the remote refused it" in text


def test_a_long_result_is_cut_on_the_screen_and_says_by_how_much() -> None:
    lines = step_lines(call("\n".join(str(n) for n in range(100))))

    assert lines[-1].strip() == "… 88 more lines"


def test_control_characters_of_a_model_never_reach_the_terminal() -> None:
    step = {"seq": 1, "kind": "assistant", "text": "\x1b[2Jgone\x07"}

    assert "\x1b" not in "".join(step_lines(step))


def test_a_kind_of_step_from_a_newer_drone_is_passed_over() -> None:
    assert step_lines({"seq": 1, "kind": "never heard of"}) == []


def test_streamed_text_is_not_shown_twice(capsys: pytest.CaptureFixture[str]) -> None:
    stream = Following(
        ("delta", {"kind": "text", "text": "I loo"}),
        ("delta", {"kind": "text", "text": "ked."}),
        ("step", {"seq": 1, "kind": "assistant", "text": "I looked."}),
        ("step", {"seq": 2, "kind": "assistant", "text": "Whole."}),
        ("end", ORDER),
    )

    follow_as_text(stream, "a1b2c3d4e5f6")

    printed = capsys.readouterr().out
    assert printed.count("I looked.") == 1
    assert "Whole." in printed


def test_following_as_json_prints_an_event_a_line_and_the_order_last(capsys: pytest.CaptureFixture[str]) -> None:
    stream = Following(("step", {"seq": 1, "kind": "phase"}), ("heartbeat", {"at": "now"}), ("end", ORDER))

    follow_as_json(stream, "a1b2c3d4e5f6")

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert '"event": "step"' in lines[0]
    assert '"id": "a1b2c3d4e5f6"' in lines[1]


def test_an_order_is_shown_with_prompt_reason_and_outcome() -> None:
    text = order_text(ORDER)

    assert all(word in text for word in ("Fix it", "mila", "the model submitted its work", "fleet patch a1b2c3d4e5f6"))


def test_no_colour_reaches_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())

    assert "\x1b" not in outcome_text(ORDER)
