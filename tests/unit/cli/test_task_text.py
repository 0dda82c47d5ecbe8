"""A task as it is told to people: by day and hour, folded on a terminal, plain in a pipe."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from control_plane.cli.task_text import run_text, task_text

Doc = dict[str, Any]


def comment(text: str, minute: int, author: str = "lead", **fields: Any) -> Doc:
    at = f"2026-11-22T08:{minute:02}:00Z"
    own = {"id": str(minute), "author": author, "user": "", "kind": "comment", "text": text, "run": None, "at": at}
    return {"kind": "comment", "at": at, "run": None, "comment": {**own, **fields}}


def a_run(agent: str, minute: int, **fields: Any) -> Doc:
    at = f"2026-11-22T08:{minute:02}:00Z"
    own = {
        "run_id": "0123456789ab",
        "order": "aaaaaaaaaaaa",
        "task": "PAYM-0001",
        "agent": agent,
        "status": "success",
        "exit_status": "stopped",
        "reason": "",
        "drone": "mila",
        "model": "openai/scripted",
        "attempt": 1,
        "duration_seconds": 72.3,
        "input_tokens": 1200,
        "output_tokens": 34,
        "tool_calls": 3,
        "cost_usd": 0.0123,
        "started_at": at,
        "ended_at": at,
        "doing": "",
        "branch": "fleet/aaaaaaaaaaaa",
        "head_commit": "b" * 40,
    }
    return {"kind": "run", "at": at, "comment": None, "run": {**own, **fields}}


def a_task(*timeline: Doc, **fields: Any) -> Doc:
    totals = {"runs": 2, "cost_usd": 0.02, "unknown_costs": 1, "duration_ms": 61_000}
    return {
        "id": "PAYM-0001",
        "title": "Add a currency to every price",
        "status": "open",
        "assignee": "user",
        "reason": "waiting for you: lead wrote: have a look",
        "project": "shop",
        "mode": "build",
        "priority": 0,
        "user": "maria",
        "created_at": "2026-11-22T08:01:00Z",
        "totals": {**totals, "input_tokens": 1234, "output_tokens": 567},
        "branch": "fleet/aaaaaaaaaaaa",
        "head_commit": "b" * 40,
        "pushed": True,
        "pull_request": None,
        "limits": {"cost_limit": 1.5},
        "description": "Add a currency to every price",
        "timeline": list(timeline),
        **fields,
    }


@pytest.fixture(autouse=True)
def greenwich(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The clock on the wall shows UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_the_timeline_reads_as_a_person_would_tell_it() -> None:
    """S-026."""
    told = task_text(
        a_task(
            a_run("lead", 2),
            comment("@backend please.", 3),
            a_run("backend", 4, status="failed", exit_status="time_limit", branch=None, cost_usd=None),
            comment("The run of backend failed.", 5, "system", kind="failed"),
            comment("Once more, @backend.", 6, "user", user="maria"),
            a_run(
                "backend", 7, status="running", ended_at=None, duration_seconds=None, doing="shell: npm", branch=None
            ),
        )
    )

    assert told.partition("── Sunday, 22 November 2026 ──\n\n")[2] == (
        "08:02  ✓ lead on mila · success · 1 min 12 s · $0.0123 · fleet/aaaaaaaaaaaa · 0123456789ab\n"
        "08:03  lead\n"
        "       @backend please.\n"
        "\n"
        "08:04  ✗ backend on mila · failed (time_limit) · 1 min 12 s · price unknown · 0123456789ab\n"
        "08:05  · The run of backend failed.\n"
        "08:06  maria (user)\n"
        "       Once more, @backend.\n"
        "\n"
        "08:07  ▶ backend on mila · shell: npm · 0123456789ab\n"
    )


def test_nothing_that_was_written_drives_the_terminal() -> None:
    told = task_text(a_task(comment("\x1b[2J\x1b]0;mine\x07gone", 3), title="a\x1b[31mb"))

    assert "\x1b" not in told
    assert "\x07" not in told


def test_a_run_is_shown_with_its_steps_and_long_outputs_cut_to_500_characters() -> None:
    """S-123."""
    steps = [
        {"number": 1, "kind": "tool_call", "call_id": "c", "tool": "shell", "arguments": {"command": "seq 1 500"}},
        {"number": 2, "kind": "tool_result", "output": "y" * 700, "is_error": False, "return_code": 0},
    ]
    run = {**a_run("lead", 2)["run"], "steps": steps}

    cut, full = run_text(run, full=False), run_text(run, full=True)

    assert "   1  → shell: seq 1 500" in cut
    assert "y" * 500 in cut
    assert "y" * 501 not in cut
    assert "… 200 more characters; --full shows them" in cut
    assert "y" * 700 in full
