"""Celery's state of a run, from the rows of the run and its order."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run
from control_plane.flower.recorded_tasks import state_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OPEN: dict[str, Any] = {"closed_at": None}
CLAIMED = {"closed_at": NOW, "claimed_at": NOW}
CLOSED = {"closed_at": NOW}
LAST = {"run_id": "r1"}


STATES: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any] | None, str]] = [
    (OPEN, {"status": "assigned", **LAST}, None, "PENDING"),
    (OPEN, {"status": "running", **LAST}, {"status": "running"}, "STARTED"),
    (CLOSED, {"status": "succeeded", **LAST}, {"status": "success"}, "SUCCESS"),
    (CLOSED, {"status": "failed", **LAST}, {"status": "failed"}, "FAILURE"),
    (CLOSED, {"status": "failed", **LAST}, {"status": "lost"}, "FAILURE"),
    (CLOSED, {"status": "queued", "run_id": None}, {"status": "failed"}, "RETRY"),
    (CLOSED, {"status": "succeeded", "run_id": "r2"}, {"status": "lost"}, "RETRY"),
    (CLOSED, {"status": "running", "run_id": "r2"}, {"status": "preempted"}, "RETRY"),
    (CLOSED, {"status": "running", "run_id": "r2", "renewed_generation": 1}, {"status": "failed"}, "FAILURE"),
    (CLOSED, {"status": "running", "run_id": "r2", "fresh_generation": 1}, {"status": "failed"}, "FAILURE"),
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
        found = state_of(sent, Order(**{"renewed_generation": 0, "fresh_generation": 0, **order}), began)
        if found != state:
            wrong.append((dispatch, order, run, found))
    assert wrong == []
