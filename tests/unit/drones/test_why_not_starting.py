"""Whether a drone takes work, and why not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from control_plane.db.drones import Drone
from control_plane.drones.condition import Load, status_of, why_not_starting
from shared.reasons import DroneState
from shared.states import DroneStatus

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)
AGO = timedelta(seconds=20), timedelta(minutes=27), timedelta(days=1)


def drone(**fields: Any) -> Drone:
    seen = {"last_seen_at": NOW, "stopped_at": None, "removed_at": None, "draining": False, "beat": None}
    return Drone(**{"name": "oka", "concurrency": 2, **seen, **fields})


STATES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"draining": True}, {"code": "draining"}),
    ({"beat": {"draining": True}}, {"code": "draining"}),
    ({"beat": {"draining": True, "leaving": True}}, {"code": "leaving"}),
    ({"beat": {"full": "1 GB left"}}, {"code": "disk_full", "detail": "1 GB left"}),
    ({"over_quota_at": NOW}, {"code": "over_quota"}),
    ({"last_seen_at": NOW - AGO[0]}, {"code": "unresponsive", "since": NOW - AGO[0]}),
    ({"last_seen_at": NOW - AGO[1]}, {"code": "offline", "since": NOW - AGO[1]}),
    ({"stopped_at": NOW - AGO[2]}, {"code": "offline", "since": NOW - AGO[2], "today": False}),
    ({"last_seen_at": None}, {"code": "never_started"}),
    ({"removed_at": NOW}, {"code": "removed"}),
]


def test_a_drone_that_does_not_start_an_order_says_why() -> None:
    found = [why_not_starting(drone(**fields), Load(), NOW) for fields, _ in STATES]
    assert found == [DroneState(drone="oka", **state) for _, state in STATES]


def test_a_drone_starts_an_order_if_it_has_a_free_slot_and_what_waits_takes_none() -> None:
    busy = DroneState(drone="oka", code="busy", running=2, slots=2)
    assert why_not_starting(drone(), Load(running=1), NOW) is None
    assert why_not_starting(drone(), Load(running=2), NOW) == busy
    assert status_of(drone(), Load(running=1, waiting=9), NOW) is DroneStatus.ONLINE
