"""What heartbeats and hellos write about drones, runs and messages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from control_plane.db.drones import Drone, InboxMessage
from control_plane.db.runs import Run
from control_plane.drones.inbox import notify_drone
from control_plane.operations.drones import managing
from shared import names
from shared.control import Drain
from shared.work_order import WorkOrder
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


def test_a_first_beat_brings_a_drone_online(any_plane: Plane) -> None:
    oka = any_plane.drone(online=False)
    any_plane.collector()
    assert shown(any_plane).status == "offline"
    any_plane.until(lambda: oka.beat() or shown(any_plane).status == "online")


def test_the_last_beat_of_a_clean_stop_takes_it_offline_and_the_next_brings_it_back(plane: Plane) -> None:
    oka = plane.drone()
    plane.collector()
    plane.until(lambda: oka.beat(stopping=True) or shown(plane).status == "offline")
    plane.until(lambda: oka.beat() or shown(plane).status == "online")


def test_how_busy_its_machine_is_is_known_while_it_is_online(plane: Plane) -> None:
    oka = plane.drone()
    plane.collector()
    use = {"cpu_percent": 37.5, "memory_percent": 61.0, "disk_free_mb": 120_000, "disk_mb": 512_000}
    told = plane.until(lambda: oka.beat(machine=use) or shown(plane).machine)
    assert told.model_dump() == use
    plane.until(lambda: oka.beat(machine=use, stopping=True) or shown(plane).machine is None)


def test_a_drone_that_drains_by_its_owners_wish_gets_no_orders(plane: Plane) -> None:
    oka = plane.drone()
    plane.collector()
    plane.until(lambda: oka.beat(draining=True) or shown(plane).status == "draining")
    assert plane.order(plane.submit()).status == "queued"


def test_what_a_run_does_is_shown(plane: Plane) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    order_id = plane.submit()
    order = plane.until(oka.take)
    oka.claim(order)
    oka.report(order, oka.started())
    beat = oka.run_beat(order, doing="runs pytest")
    plane.until(lambda: oka.beat(beat) or ((runs := plane.order(order_id).runs) and runs[0].doing == "runs pytest"))
    assert shown(plane).doing[0]["doing"] == "runs pytest"


def begun(plane: Plane, drone: DroneStandIn) -> WorkOrder:
    """An order that the drone has begun."""
    order_id = plane.submit()
    order = plane.until(drone.take)
    drone.claim(order)
    drone.report(order, drone.started())
    plane.until(lambda: plane.status(order_id) == "running")
    return order


@pytest.mark.parametrize("ahead", [timedelta(), timedelta(hours=3), timedelta(hours=-3)])
def test_how_long_a_run_is_quiet_is_shown_whatever_the_drones_clock_says(plane: Plane, ahead: timedelta) -> None:
    oka = plane.drone()
    oka.ahead = ahead
    plane.collector(), plane.supervisor()
    order = begun(plane, oka)
    beat = oka.run_beat(order, doing="shell: npm test", doing_seconds=190, quiet_seconds=150)
    plane.until(lambda: oka.beat(beat) or plane.order(order.order_id).doing == "no progress for 2 min: shell: npm test")
    (run,), now = plane.order(order.order_id).runs, plane.core.clock.now()
    assert timedelta(seconds=190) <= now - run.doing_since < timedelta(seconds=230)
    assert timedelta(seconds=150) <= now - run.progress_at < timedelta(seconds=190)
    assert shown(plane).doing[0]["in_words"] == "no progress for 2 min: shell: npm test"


def test_a_run_that_waits_for_a_person_may_be_quiet(plane: Plane) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    order = begun(plane, oka)
    doing = "waiting for approval of shell"
    beat = oka.run_beat(order, doing=doing, doing_seconds=7200, quiet_seconds=7200, waits_for="person")
    plane.until(lambda: oka.beat(beat) or plane.order(order.order_id).doing == f"{doing}, for 2 h 0 min")
    assert plane.order(order.order_id).runs[0].waits_for == "person"


def test_a_drone_that_says_no_durations_counts_from_when_it_was_heard_first(plane: Plane) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    order = begun(plane, oka)
    beat = oka.run_beat(order, doing="thinks")
    plane.until(lambda: oka.beat(beat) or plane.order(order.order_id).runs[0].doing == "thinks")
    first = plane.order(order.order_id).runs[0]
    plane.until(lambda: oka.beat(beat) or plane.order(order.order_id).runs[0].progress_at > first.progress_at)
    assert plane.order(order.order_id).runs[0].doing_since == first.doing_since


def test_a_run_that_was_given_up_and_still_beats_is_revoked_again_after_the_broker_was_emptied(
    plane: Plane, valkey: BrokerServer
) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    order = begun(plane, oka)
    plane.edit(Run, order.run_id, status="lost")
    valkey.redis.flushall()
    beat = oka.run_beat(order, doing="thinks")
    plane.until(lambda: oka.beat(beat) or plane.key(oka, order.run_id) == "revoked:1")


def test_a_run_that_the_database_does_not_know_is_revoked_unless_it_has_ended(plane: Plane) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    order = begun(plane, oka)
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


def test_a_hello_tells_what_the_drone_is_now(plane: Plane) -> None:
    oka = plane.drone(labels={"gpu": "no"})
    plane.collector()
    oka.concurrency = 7
    oka.restart()
    row = plane.until(lambda: (found := plane.rows(Drone)[0]).boot_id == oka.boot and found)
    assert (row.concurrency, row.labels) == (7, {"gpu": "no"})


# --- the inbox --------------------------------------------------------------------------------


def test_a_message_is_in_the_drones_inbox_and_said_aloud(plane: Plane) -> None:
    oka = plane.drone()
    plane.supervisor()
    with oka.redis.pubsub(ignore_subscribe_messages=True) as ear:
        ear.subscribe(names.control_channel(oka.id))
        plane.until(lambda: ear.get_message(timeout=0.1) is None)
        message_id = leave_message(plane, oka)
        heard = plane.until(lambda: ear.get_message(timeout=0.1))
    assert [message.id for message in oka.inbox()] == [message_id]
    assert heard["data"] == oka.redis.hgetall(names.inbox_key(oka.id))[message_id]


def test_a_message_stays_until_the_drone_acted_on_it(plane: Plane) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    message_id = leave_message(plane, oka)
    plane.until(oka.inbox)
    oka.acted_on.append(message_id)
    plane.until(lambda: oka.beat() or not oka.inbox())
    assert plane.rows(InboxMessage)[0].done_at is not None


def test_an_inbox_that_redis_lost_is_written_again(plane: Plane, valkey: BrokerServer) -> None:
    oka = plane.drone()
    plane.supervisor()
    message_id = leave_message(plane, oka)
    plane.until(oka.inbox)
    valkey.redis.flushall()
    assert plane.until(oka.inbox)[0].id == message_id


def test_a_message_written_while_the_broker_was_away_arrives(plane: Plane, valkey: BrokerServer) -> None:
    oka = plane.drone()
    plane.supervisor()
    valkey.stop()
    message_id = leave_message(plane, oka)
    valkey.start()
    assert plane.until(lambda: _inbox_if_there(oka))[0].id == message_id


def _inbox_if_there(drone: DroneStandIn) -> Any:
    return drone.redis.hgetall(names.inbox_key(drone.id)) and drone.inbox()
