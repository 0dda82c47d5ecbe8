"""What heartbeats and hellos write about drones, runs and messages."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from control_plane.contract.declarations.drones import DroneEdit
from control_plane.contract.documents.orders import RunDocument
from control_plane.db.drones import Drone, InboxMessage
from control_plane.db.runs import Run
from control_plane.drones import inbox
from control_plane.drones.condition import worker_of
from control_plane.drones.inbox import notify_drone
from control_plane.operations.drones import managing
from drone.reporting.uplink import Sealer
from drone.worker.inbox import Inbox
from shared import names
from shared.control import Confirm, Drain
from tests.support.broker import BrokerServer
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn


def shown(plane: Plane) -> Any:
    return managing.list_drones(plane.core, plane.admin)[0]


def leave_message(plane: Plane, drone: DroneStandIn, *, on: bool = True) -> str:
    with plane.core.database.write() as db:
        message_id = notify_drone(db, plane.core, drone.id, Drain(on=on))
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
    oka.beat(machine=use, stopping=True)
    plane.until(lambda: shown(plane).status == "offline")
    assert shown(plane).machine is None
    # A hello that is read after its boot's last beat does not bring the drone back.
    oka.hello(version="0.9")
    plane.until(lambda: shown(plane).version == "0.9")
    assert shown(plane).status == "offline"
    oka.restart()
    plane.until(lambda: shown(plane).status == "online")


def test_a_drone_that_drains_by_its_owners_wish_gets_no_orders(running: Plane, oka: DroneStandIn) -> None:
    running.until(lambda: oka.beat(draining=True) or shown(running).status == "draining")
    assert running.order(running.submit()).status == "queued"


@pytest.mark.parametrize("ahead", [timedelta(hours=3), timedelta(hours=-3)])
def test_how_long_a_run_is_quiet_is_shown_whatever_the_drones_clock_says(
    running: Plane, oka: DroneStandIn, ahead: timedelta
) -> None:
    oka.ahead = ahead
    work = running.begun(oka)

    def shown_run() -> RunDocument:
        return running.order(work.order_id).runs[0]

    beat = oka.run_beat(work, doing="shell: npm test", doing_seconds=190, quiet_seconds=150)
    running.until(lambda: oka.beat(beat) or "no progress for 2 min" in running.order(work.order_id).doing)
    run, now = shown_run(), running.core.clock.now()
    assert timedelta(seconds=190) <= now - run.doing_since < timedelta(seconds=230)
    assert timedelta(seconds=150) <= now - run.progress_at < timedelta(seconds=190)

    # A run that waits for a person may be quiet.
    asks = "waiting for approval of shell"
    waits = oka.run_beat(work, doing=asks, doing_seconds=7200, quiet_seconds=7200, waits_for="person")
    running.until(lambda: oka.beat(waits) or running.order(work.order_id).doing == f"{asks}, for 2 h 0 min")


def test_a_run_that_was_given_up_or_is_unknown_is_revoked_by_its_beat_unless_it_has_ended(
    running: Plane, oka: DroneStandIn, valkey: BrokerServer
) -> None:
    lost, order = running.begun(oka), running.begun(oka)
    running.edit(Run, lost.run_id, status="lost")
    valkey.redis.flushall()
    unknown = oka.run_beat(order).model_copy(update={"run_id": "0123456789ab", "generation": 7})
    ended = unknown.model_copy(update={"run_id": "ba9876543210", "ended": True})
    beats = oka.run_beat(lost), oka.run_beat(order), unknown, ended
    running.until(lambda: oka.beat(*beats) or running.key(oka, unknown.run_id) == "revoked:7")
    assert running.key(oka, lost.run_id) == "revoked:1"
    assert running.key(oka, ended.run_id) == ""
    assert running.key(oka, order.run_id) != "revoked:1"


def test_an_ended_run_is_confirmed_again_while_its_drone_waits_for_that(running: Plane, oka: DroneStandIn) -> None:
    work = running.begun(oka)
    oka.report(work, oka.ended())
    oka.acted_on += [message.id for message in running.until(lambda: oka.told("confirm"))]
    running.until(lambda: oka.beat() or not oka.inbox())
    beat = oka.run_beat(work, ended=True)
    (again,) = running.until(lambda: oka.beat(beat) or oka.told("confirm"))
    assert again.body == Confirm(run_id=work.run_id, last_seq=beat.last_seq)


# --- the inbox --------------------------------------------------------------------------------


def test_a_message_is_said_aloud_and_in_the_drones_inbox_until_it_acted_on_it_also_if_redis_lost_it_or_was_away(
    running: Plane, oka: DroneStandIn, valkey: BrokerServer
) -> None:
    with oka.redis.pubsub(ignore_subscribe_messages=True) as ear:
        ear.subscribe(names.control_channel(oka.id))
        running.until(lambda: ear.get_message(timeout=0.1) is None)
        first = leave_message(running, oka)
        heard = running.until(lambda: ear.get_message(timeout=0.1))
    assert [message.id for message in oka.inbox()] == [first]
    assert heard["data"] == oka.redis.hgetall(names.inbox_key(oka.id))[first]
    valkey.redis.flushall()
    assert running.until(oka.inbox)[0].id == first
    valkey.stop()
    second = leave_message(running, oka)
    valkey.start()
    running.until(lambda: {message.id for message in oka.inbox()} == {first, second})
    oka.acted_on += [first, second]
    running.until(lambda: oka.beat() or not oka.inbox())
    assert all(row.done_at for row in running.rows(InboxMessage))


def test_a_message_that_redis_lost_takes_nothing_back_that_was_said_after_it(
    plane: Plane, oka: DroneStandIn, tmp_path: Path
) -> None:
    acted: list[str] = []
    sealer = Sealer(oka.id, oka.private_key, oka.control_key, plane.core.clock)
    drone = Inbox(sealer, lambda message: acted.append(message.id), {"drain": tmp_path / "last-drain"})

    def read() -> None:
        letters = plane.core.broker.redis.hgetall(names.inbox_key(oka.id))
        drone.read({name.encode(): envelope.encode() for name, envelope in letters.items()})

    drained = leave_message(plane, oka)
    inbox.send_new(plane.core)
    plane.core.broker.redis.delete(names.inbox_key(oka.id))
    plane.core.clock.sleep(1)
    resumed = leave_message(plane, oka, on=False)
    inbox.send_new(plane.core)
    read()
    plane.core.clock.sleep(1)
    assert inbox.send_missing(plane.core) == 1
    read()
    assert (acted, set(drone.done())) == ([resumed], {drained, resumed})


def test_a_renamed_drone_is_told_once_and_keeps_its_worker_until_it_reports_the_name(
    plane: Plane, oka: DroneStandIn
) -> None:
    def worker() -> str:
        return worker_of(plane.rows(Drone)[0])

    plane.collector()
    oka.beat(name="oka")
    plane.until(lambda: worker() == f"oka.{oka.id}@test-host")

    managing.edit_drone(plane.core, plane.admin, "oka", DroneEdit(new_name="west"))
    for field in ("draining", "leaving"):
        oka.beat(name="oka", **{field: True})
        plane.until(lambda said=field: plane.rows(Drone)[0].beat[said])

    assert [row.body["name"] for row in plane.rows(InboxMessage) if row.body["kind"] == "rename"] == ["west"]
    assert worker() == f"oka.{oka.id}@test-host"
    oka.beat(name="west")
    plane.until(lambda: worker() == f"west.{oka.id}@test-host")
