"""What heartbeats and hellos write about drones, runs and messages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from control_plane.db.drones import Drone, InboxMessage
from control_plane.db.runs import Run
from control_plane.declarations.drones import DroneEdit
from control_plane.drones.inbox import notify_drone
from control_plane.drones.load import worker_of
from control_plane.operations.drones import managing
from shared import names
from shared.control import Drain
from tests.support.broker import BrokerServer
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn


def shown(plane: Plane) -> Any:
    return managing.list_drones(plane.core, plane.admin)[0]


def leave_message(plane: Plane, drone: DroneStandIn) -> str:
    with plane.core.database.write() as db:
        message_id = notify_drone(db, plane.core, drone.id, Drain(on=True))
    plane.core.broker.wake()
    return message_id


def test_a_drone_is_online_from_its_first_beat_to_the_last_one_of_a_clean_stop_and_its_machine_known(
    plane: Plane,
) -> None:
    oka = plane.drone(online=False)
    plane.collector()
    assert shown(plane).status == "offline"
    use = {"cpu_percent": 37.5, "memory_percent": 61.0, "disk_free_mb": 120_000, "disk_mb": 512_000}
    told = plane.until(lambda: oka.beat(machine=use) or shown(plane).machine)
    assert (told.model_dump(), shown(plane).status) == (use, "online")
    plane.until(lambda: oka.beat(machine=use, stopping=True) or shown(plane).status == "offline")
    assert shown(plane).machine is None
    plane.until(lambda: oka.beat() or shown(plane).status == "online")


def test_a_drone_that_drains_by_its_owners_wish_gets_no_orders(plane: Plane) -> None:
    oka = plane.drone()
    plane.collector()
    plane.until(lambda: oka.beat(draining=True) or shown(plane).status == "draining")
    assert plane.order(plane.submit()).status == "queued"


@pytest.mark.parametrize("ahead", [timedelta(hours=3), timedelta(hours=-3)])
def test_how_long_a_run_is_quiet_is_shown_whatever_the_drones_clock_says(plane: Plane, ahead: timedelta) -> None:
    oka = plane.drone()
    oka.ahead = ahead
    plane.collector(), plane.supervisor()
    order = plane.begun(oka)
    beat = oka.run_beat(order, doing="shell: npm test", doing_seconds=190, quiet_seconds=150)
    plane.until(lambda: oka.beat(beat) or "no progress for 2 min" in plane.order(order.order_id).doing)
    (run,), now = plane.order(order.order_id).runs, plane.core.clock.now()
    assert timedelta(seconds=190) <= now - run.doing_since < timedelta(seconds=230)
    assert timedelta(seconds=150) <= now - run.progress_at < timedelta(seconds=190)
    assert shown(plane).doing[0]["doing"] == "shell: npm test"


def test_a_run_that_was_given_up_and_still_beats_is_revoked_again_after_the_broker_was_emptied(
    plane: Plane, valkey: BrokerServer
) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    order = plane.begun(oka)
    plane.edit(Run, order.run_id, status="lost")
    valkey.redis.flushall()
    beat = oka.run_beat(order, doing="thinks")
    plane.until(lambda: oka.beat(beat) or plane.key(oka, order.run_id) == "revoked:1")


def test_a_run_that_the_database_does_not_know_is_revoked_unless_it_has_ended(plane: Plane) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    order = plane.begun(oka)
    unknown = oka.run_beat(order).model_copy(update={"run_id": "0123456789ab", "generation": 7})
    ended = unknown.model_copy(update={"run_id": "ba9876543210", "ended": True})
    plane.until(lambda: oka.beat(unknown, ended) or plane.key(oka, unknown.run_id) == "revoked:7")
    assert plane.key(oka, ended.run_id) == ""
    assert plane.key(oka, order.run_id) != "revoked:1"


def test_a_beat_of_another_key_is_no_sign_of_life(plane: Plane) -> None:
    oka, mila = plane.drone("oka", online=False), plane.drone("mila")
    plane.collector()
    forged = DroneStandIn(oka.id, "oka", plane.core.broker.redis, mila.private_key, mila.control_key)
    plane.until(lambda: forged.beat() or mila.beat() or _beat_of(plane, mila))
    assert plane.rows(Drone, Drone.id == oka.id)[0].last_seen_at is None


def _beat_of(plane: Plane, drone: DroneStandIn) -> Any:
    return plane.rows(Drone, Drone.id == drone.id)[0].beat


# --- the inbox --------------------------------------------------------------------------------


def test_a_message_is_said_aloud_and_in_the_drones_inbox_until_it_acted_on_it(plane: Plane) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    with oka.redis.pubsub(ignore_subscribe_messages=True) as ear:
        ear.subscribe(names.control_channel(oka.id))
        plane.until(lambda: ear.get_message(timeout=0.1) is None)
        message_id = leave_message(plane, oka)
        heard = plane.until(lambda: ear.get_message(timeout=0.1))
    assert [message.id for message in oka.inbox()] == [message_id]
    assert heard["data"] == oka.redis.hgetall(names.inbox_key(oka.id))[message_id]
    oka.acted_on.append(message_id)
    plane.until(lambda: oka.beat() or not oka.inbox())
    assert plane.rows(InboxMessage)[0].done_at is not None


def test_an_inbox_that_redis_lost_is_written_again_and_a_message_of_its_absence_arrives(
    plane: Plane, valkey: BrokerServer
) -> None:
    oka = plane.drone()
    plane.supervisor()
    first = leave_message(plane, oka)
    plane.until(oka.inbox)
    valkey.redis.flushall()
    assert plane.until(oka.inbox)[0].id == first
    valkey.stop()
    second = leave_message(plane, oka)
    valkey.start()
    assert second in {message.id for message in plane.until(lambda: len(oka.inbox()) == 2 and oka.inbox())}


# --- a drone is told its name when a heartbeat shows another one


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


def test_a_run_that_waits_for_a_person_may_be_quiet(plane: Plane) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    order = plane.begun(oka)
    doing = "waiting for approval of shell"
    beat = oka.run_beat(order, doing=doing, doing_seconds=7200, quiet_seconds=7200, waits_for="person")
    plane.until(lambda: oka.beat(beat) or plane.order(order.order_id).doing == f"{doing}, for 2 h 0 min")
    assert plane.order(order.order_id).runs[0].waits_for == "person"


def test_a_drone_that_says_no_durations_counts_from_when_it_was_heard_first(plane: Plane) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    order = plane.begun(oka)
    beat = oka.run_beat(order, doing="thinks")
    plane.until(lambda: oka.beat(beat) or plane.order(order.order_id).runs[0].doing == "thinks")
    first = plane.order(order.order_id).runs[0]
    plane.until(lambda: oka.beat(beat) or plane.order(order.order_id).runs[0].progress_at > first.progress_at)
    assert plane.order(order.order_id).runs[0].doing_since == first.doing_since
