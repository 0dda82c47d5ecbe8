"""How Flower shows the end of a run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from drone.worker.app import RunFailed, RunReturned, RunWithdrawn
from drone.worker.node import result_of
from drone.worker.order_runner import RunResult
from shared.events import Receipt, RunEnded

FAILED = {"status": "failed", "exit_status": "refused"}
CASES: list[tuple[dict[str, Any] | None, type[Exception]]] = [
    ({**FAILED}, RunFailed),
    ({**FAILED, "order_at_fault": False}, RunReturned),
    ({**FAILED, "unsuitable": True}, RunReturned),
    ({**FAILED, "give_back": True}, RunReturned),
    ({"status": "preempted", "exit_status": "preempted"}, RunReturned),
    ({"status": "preempted", "exit_status": "canceled"}, RunWithdrawn),
    ({**FAILED, "exit_status": "canceled"}, RunWithdrawn),
    (None, RunReturned),
]


def test_only_a_run_that_ends_its_order_has_failed() -> None:
    receipt = Receipt(at=datetime(2026, 1, 1, tzinfo=UTC))
    for end, kind in CASES:
        ended = RunEnded.model_validate({"reason": "secret", "receipt": receipt, **end}) if end else None
        with pytest.raises(kind) as raised:
            result_of("run000000000", "order0000000", RunResult(end=ended))
        assert type(raised.value) is kind
        assert "secret" not in repr(raised.value) + repr(getattr(raised.value, "exc", ""))
    with pytest.raises(RunWithdrawn):
        result_of("run000000000", "order0000000", RunResult(refused=True, revoked=True))
