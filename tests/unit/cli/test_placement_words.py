"""Whether a drone takes work, and the words for why not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from control_plane.db.drones import Drone
from control_plane.drones.load import Load, clock_time, standing, status_of
from shared.states import DroneStatus

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)


def drone(**fields: Any) -> Drone:
    seen = {"last_seen_at": NOW, "stopped_at": None, "removed_at": None, "draining": False, "beat": None}
    return Drone(**{"name": "oka", "concurrency": 2, **seen, **fields})


@pytest.mark.parametrize(
    ("fields", "running", "words"),
    [
        ({}, 1, ""),
        ({}, 2, "is busy: 2 of 2 slots in use"),
        ({"draining": True}, 0, "is draining (next: fleet drone resume oka)"),
        ({"beat": {"draining": True}}, 0, "is draining (next: fleet drone resume oka)"),
        ({"last_seen_at": NOW - timedelta(seconds=20)}, 0, "is unresponsive since 12:29 UTC"),
        ({"last_seen_at": NOW - timedelta(minutes=27)}, 0, "is offline since 12:03 UTC"),
        ({"stopped_at": NOW - timedelta(days=1)}, 0, "is offline since 2026-11-20 12:30 UTC"),
        ({"last_seen_at": None}, 0, "was registered but never started (next: drone start)"),
        ({"removed_at": NOW}, 0, "was removed"),
    ],
)
def test_a_drone_that_does_not_start_an_order_says_why(fields: dict[str, Any], running: int, words: str) -> None:
    assert standing(drone(**fields), Load(running=running), NOW) == words


def test_what_waits_in_the_queue_takes_no_slot() -> None:
    assert status_of(drone(), Load(running=1, waiting=9), NOW) is DroneStatus.ONLINE


def test_a_time_of_another_day_has_its_date() -> None:
    assert clock_time(NOW - timedelta(days=2), NOW) == "2026-11-19 12:30 UTC"
