"""The one word that the board shows of a drone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from shared.states import DroneStatus, drone_status

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
FACTS: dict[str, Any] = {
    "now": NOW,
    "last_seen_at": NOW,
    "stopped": False,
    "removed": False,
    "draining": False,
    "running": 0,
    "concurrency": 1,
}


def test_a_drone_is_what_the_facts_make_it() -> None:
    cases: list[tuple[dict[str, Any], DroneStatus]] = [
        ({}, DroneStatus.ONLINE),
        ({"running": 1}, DroneStatus.BUSY),
        ({"running": 1, "concurrency": 2}, DroneStatus.ONLINE),
        ({"draining": True, "running": 1}, DroneStatus.DRAINING),
        ({"last_seen_at": NOW - timedelta(seconds=14.9)}, DroneStatus.ONLINE),
        ({"last_seen_at": NOW - timedelta(seconds=15)}, DroneStatus.UNRESPONSIVE),
        ({"last_seen_at": NOW - timedelta(seconds=59.9), "draining": True}, DroneStatus.UNRESPONSIVE),
        ({"last_seen_at": NOW - timedelta(seconds=60)}, DroneStatus.OFFLINE),
        ({"last_seen_at": None}, DroneStatus.OFFLINE),
        ({"stopped": True}, DroneStatus.OFFLINE),
        ({"removed": True, "stopped": True}, DroneStatus.REMOVED),
    ]
    wrong = [(facts, got) for facts, expected in cases if (got := drone_status(**{**FACTS, **facts})) is not expected]
    assert wrong == []
