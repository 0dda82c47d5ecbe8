"""Celery's state of a run, from the rows of the run and its order."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from celery import Celery

from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run
from control_plane.telemetry.flower.recorded_tasks import RecordedTask, state_of
from control_plane.telemetry.flower.task_events import TaskEvents
from tests.support.clocks import HandClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OPEN: dict[str, Any] = {"closed_at": None}
CLAIMED = {"closed_at": NOW, "claimed_at": NOW}
CLOSED = {"closed_at": NOW}
ONLY_ONE = {"generation": 1, "renewed_generation": 0, "fresh_generation": 0}
LAST = {"run_id": "r1"}
SECOND = {"run_id": "r2", "generation": 2}


STATES: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any] | None, str]] = [
    (OPEN, {"status": "assigned", **LAST}, None, "PENDING"),
    (OPEN, {"status": "running", **LAST}, {"status": "running"}, "STARTED"),
    (CLOSED, {"status": "succeeded", **LAST}, {"status": "success"}, "SUCCESS"),
    (CLOSED, {"status": "failed", **LAST}, {"status": "failed"}, "FAILURE"),
    (CLOSED, {"status": "failed", **LAST}, {"status": "lost"}, "FAILURE"),
    (CLOSED, {"status": "queued", "run_id": None}, {"status": "failed"}, "RETRY"),
    (CLOSED, {"status": "canceled", "run_id": None}, {"status": "lost"}, "REVOKED"),
    (CLOSED, {"status": "canceled", "run_id": None, "renewed_generation": 1}, {"status": "lost"}, "FAILURE"),
    (CLOSED, {"status": "succeeded", **SECOND}, {"status": "lost"}, "RETRY"),
    (CLOSED, {"status": "running", **SECOND}, {"status": "preempted"}, "RETRY"),
    (CLOSED, {"status": "running", **SECOND, "renewed_generation": 1}, {"status": "failed"}, "FAILURE"),
    (CLOSED, {"status": "running", **SECOND, "fresh_generation": 1}, {"status": "failed"}, "FAILURE"),
    (CLOSED, {"status": "canceled", **LAST}, {"status": "lost"}, "REVOKED"),
    (CLOSED, {"status": "canceled", **LAST}, {"status": "preempted", "exit_status": "canceled"}, "REVOKED"),
    (CLOSED, {"status": "failed", **LAST}, {"status": "failed", "exit_status": "canceled"}, "REVOKED"),
    (CLOSED, {"status": "canceled", **LAST}, None, "REVOKED"),
    (CLOSED, {"status": "queued", "run_id": None}, None, "REVOKED"),
    (CLAIMED, {"status": "queued", "run_id": None}, None, "RETRY"),
    (CLAIMED, {"status": "failed", **LAST}, None, "FAILURE"),
]


def test_a_run_has_failed_only_if_its_order_has() -> None:
    wrong = []
    for dispatch, order, run, state in STATES:
        sent = Dispatch(id="r1", generation=1, **dispatch)
        began = Run(id="r1", generation=1, **run) if run is not None else None
        found = state_of(sent, Order(**{**ONLY_ONE, **order}), began)
        if found != state:
            wrong.append((dispatch, order, run, found))
    assert wrong == []


def test_a_retry_that_turns_out_to_be_the_last_run_is_shown_as_it_ended() -> None:
    app, loop = Celery(set_as_current=False), asyncio.new_event_loop()
    flower = TaskEvents(app, HandClock(NOW), limit=10, io_loop=loop)
    task = RecordedTask(
        run_id="r1",
        order_id="o1",
        organization="default",
        generation=1,
        worker="mila.d1@host",
        state="RETRY",
        exit_status="lost",
        sent_at=NOW.timestamp() - 60,
        started_at=NOW.timestamp() - 50,
        ended_at=NOW.timestamp() - 40,
    )
    shown = []
    for state in ("RETRY", "REVOKED"):
        flower.settle([replace(task, state=state)])
        shown.append(flower.state.tasks["r1"].state)
    assert shown == ["RETRY", "REVOKED"]
    loop.close()
