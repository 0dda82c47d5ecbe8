"""A drone is told its name when a heartbeat shows another one."""

from __future__ import annotations

from control_plane.db.drones import Drone, InboxMessage
from control_plane.declarations.drones import DroneEdit
from control_plane.drones.load import worker_of
from control_plane.operations.drones import managing
from tests.support.planes import Plane


def told(plane: Plane) -> list[str]:
    """The names that were sent to drones, in order."""
    rows = sorted(plane.rows(InboxMessage), key=lambda row: row.created_at)
    return [row.body["name"] for row in rows if row.body["kind"] == "rename"]


def worker(plane: Plane, drone_id: str) -> str:
    return worker_of(plane.rows(Drone, Drone.id == drone_id)[0])


def test_a_renamed_drone_is_told_once_and_keeps_its_worker_until_it_reports_the_name(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.collector()
    oka.beat(name="oka")
    plane.until(lambda: worker(plane, oka.id) == f"oka.{oka.id}@test-host")

    managing.edit_drone(plane.core, plane.admin, "oka", DroneEdit(new_name="west"))
    oka.beat(name="oka")
    plane.until(lambda: told(plane) == ["west"])
    oka.beat(name="oka", draining=True)
    plane.until(lambda: plane.rows(Drone)[0].beat["draining"])
    oka.beat(name="oka", leaving=True)
    plane.until(lambda: plane.rows(Drone)[0].beat["leaving"])

    assert told(plane) == ["west"]
    assert worker(plane, oka.id) == f"oka.{oka.id}@test-host"
    oka.beat(name="west")
    plane.until(lambda: worker(plane, oka.id) == f"west.{oka.id}@test-host")


def test_a_drone_of_an_earlier_version_is_not_told_and_its_worker_has_only_its_id(plane: Plane) -> None:
    old = plane.drone("old")
    plane.collector()
    managing.edit_drone(plane.core, plane.admin, "old", DroneEdit(new_name="new"))
    old.beat(warm=True)
    plane.until(lambda: (plane.rows(Drone)[0].beat or {}).get("warm"))

    assert told(plane) == []
    assert worker(plane, old.id) == f"{old.id}@test-host"
