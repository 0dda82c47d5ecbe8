"""Runs whose drone fell silent or came back without them, and what becomes of their orders."""

from __future__ import annotations

from datetime import timedelta

import pytest

from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order
from control_plane.operations.drones import managing
from control_plane.supervisor.heartbeat_monitor import HeartbeatMonitor
from shared import names
from shared.events import Prepared
from shared.names import new_id
from shared.reasons import RunEnd, RunLoss
from shared.work_order import WorkOrder
from tests.support.broker import BrokerServer
from tests.support.planes import QUICK, Plane
from tests.support.stand_in import DroneStandIn

LONG_AGO = timedelta(minutes=5)


def fall_silent(plane: Plane, drone: DroneStandIn, since: timedelta = LONG_AGO) -> None:
    """As after some time without a beat: the lease key is gone, and the last sign of life is old."""
    plane.core.broker.redis.delete(names.lease_key(drone.id))
    plane.edit(Drone, drone.id, last_seen_at=plane.core.clock.now() - since)


def test_the_run_of_a_silent_drone_is_lost_and_its_order_queued_again(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.collector(), plane.supervisor(lost_after=0.5)
    order = plane.begun(oka)
    fall_silent(plane, oka)
    found = plane.until(lambda: (o := plane.order(order.order_id)).generation == 2 and o)
    assert [(run.status, run.exit_status) for run in found.runs] == [("lost", "lost")]
    assert plane.key(oka, order.run_id) == "revoked:1"


def test_the_run_of_a_silent_drone_whose_end_waits_for_a_collector_is_not_lost(plane: Plane) -> None:
    ended, without_end = plane.drone("oka"), plane.drone("mila")
    collector = plane.collector()
    plane.supervisor(lost_after=3.0)
    order, other = plane.begun(ended), plane.begun(without_end)
    plane.stop(collector)
    ended.report(order, ended.ended())
    for drone in (ended, without_end):
        fall_silent(plane, drone, timedelta(seconds=4))

    plane.until(lambda: plane.order(other.order_id).generation == 2)
    assert plane.order(order.order_id).generation == 1

    plane.collector()
    plane.until(lambda: plane.status(order.order_id) == "succeeded")
    assert plane.order(order.order_id).generation == 1


def test_events_that_nobody_stores_do_not_keep_a_run_for_ever(plane: Plane) -> None:
    oka = plane.drone("oka")
    collector = plane.collector()
    plane.supervisor(lost_after=0.5)
    order = plane.begun(oka)
    plane.stop(collector)
    oka.report(order, oka.ended())
    fall_silent(plane, oka)

    plane.until(lambda: plane.order(order.order_id).generation == 2)


def test_a_renewed_lease_key_outvotes_a_subscription_that_hears_nothing(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.collector(), plane.supervisor(lost_after=0.5)
    order = plane.begun(oka)
    plane.edit(Drone, oka.id, last_seen_at=plane.core.clock.now() - LONG_AGO)
    mila = plane.drone("mila")
    silent = plane.begun(mila)
    fall_silent(plane, mila)
    plane.until(lambda: plane.order(silent.order_id).generation == 2)
    assert plane.order(order.order_id).status == "running"


def test_nothing_is_lost_while_the_own_beat_does_not_come_back(plane: Plane, valkey: BrokerServer) -> None:
    oka = plane.drone("oka")
    plane.collector()
    plane.supervisor(lost_after=0.5)
    order = plane.begun(oka)
    # Everything but the own beat still works: publishing on beat channels alone is taken from the control plane.
    valkey.redis.execute_command(
        "ACL", "SETUSER", "control", "resetchannels", "&fleet:wake", "&fleet:changed", "&*live"
    )
    fall_silent(plane, oka)
    pass_time(plane, 1.5)
    assert plane.order(order.order_id).generation == 1
    valkey.redis.execute_command("ACL", "SETUSER", "control", "allchannels")
    plane.until(lambda: plane.order(order.order_id).generation == 2)


def pass_time(plane: Plane, seconds: float) -> None:
    """Let the supervisor look several times."""
    until = plane.core.clock.now() + timedelta(seconds=seconds)
    plane.until(lambda: plane.core.clock.now() > until)


def test_a_supervisor_that_does_not_hear_itself_measures_no_silence(plane: Plane) -> None:
    clock = plane.core.clock
    monitor = HeartbeatMonitor(plane.core, new_id(), QUICK, lambda *, everything: None)
    monitor.catch_up()
    clock.sleep(QUICK.own_beat)
    assert monitor.silent_for("any drone") == pytest.approx(QUICK.own_beat)
    clock.sleep(60)
    assert monitor.silent_for("any drone") == 0


def test_an_open_push_grant_is_not_taken_back(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.collector(), plane.supervisor(lost_after=0.3)
    order = plane.begun(oka)
    now = plane.core.clock.now()
    plane.edit(Order, order.order_id, grant_until=now + timedelta(seconds=3))
    fall_silent(plane, oka)
    plane.until(lambda: plane.order(order.order_id).generation == 2)
    assert plane.core.clock.now() >= now + timedelta(seconds=3)


def test_an_order_whose_runs_are_lost_three_times_fails(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.collector(), plane.supervisor()
    order_id = plane.submit(drone="oka")
    for _ in range(3):
        order = plane.until(oka.take)
        oka.claim(order)
        oka.report(order, oka.started())
        oka.restart()
    found = plane.until(lambda: (o := plane.order(order_id)).status == "failed" and o)
    assert found.exit_status == "lost"
    restarted = RunLoss(code="drone_restarted", drone="oka")
    assert plane.facts(order_id).ended == RunEnd(loss=restarted, attempts=3)
    assert [run.status for run in found.runs] == ["lost", "lost", "lost"]


def test_a_drone_that_is_back_before_its_order_was_marked_as_sent_has_lost_the_run(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.collector()
    supervisor = plane.supervisor()
    order = plane.begun(oka)
    supervisor.stop()
    plane.edit(Dispatch, order.run_id, published_at=None)
    oka.restart()
    plane.until(lambda: [run.status for run in plane.order(order.order_id).runs] == ["lost"])


def test_a_drone_that_names_a_run_which_has_not_begun_keeps_it_and_loses_it_by_a_beat_without_it(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.collector(), plane.supervisor(lost_after=0.5)
    oka.renew_lease()
    order = plane.claimed(oka)
    named = oka.run_beat(order, doing="starting")
    until = plane.core.clock.now() + timedelta(seconds=3)
    plane.until(lambda: oka.beat(named) or plane.core.clock.now() > until)
    assert plane.order(order.order_id).generation == 1
    plane.until(lambda: oka.beat() or plane.order(order.order_id).generation == 2)


def test_a_drone_whose_clock_is_hours_off_is_alive_while_it_beats_and_lost_when_it_does_not(plane: Plane) -> None:
    drones = {name: plane.drone(name) for name in ("ahead", "behind")}
    drones["ahead"].ahead, drones["behind"].ahead = timedelta(hours=2), timedelta(hours=-2)
    plane.collector(), plane.supervisor(lost_after=1.0)
    orders = {name: plane.begun(drone) for name, drone in drones.items()}
    named = {
        name: drone.run_beat(orders[name], doing="thinks", doing_seconds=1, quiet_seconds=1)
        for name, drone in drones.items()
    }

    def beat_until_old() -> bool:
        for name, drone in drones.items():
            drone.beat(named[name])
        return all(_old(plane, order) for order in orders.values())

    plane.until(beat_until_old)
    assert [plane.order(order.order_id).generation for order in orders.values()] == [1, 1]
    assert {managing.show_drone(plane.core, plane.admin, name).status for name in drones} <= {"online", "busy"}
    for drone in drones.values():
        fall_silent(plane, drone)
    plane.until(lambda: all(plane.order(order.order_id).generation == 2 for order in orders.values()))


def _old(plane: Plane, order: WorkOrder) -> bool:
    return plane.core.clock.now() - plane.order(order.order_id).runs[0].started_at > timedelta(seconds=2)


# --- a drone comes back ---------------------------------------------------------------------


def test_a_run_that_ended_before_the_restart_is_not_lost(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.collector(), plane.supervisor()
    order = plane.begun(oka)
    ended = oka.journal(order, oka.ended())
    oka.restart(oka.run_beat(order, ended=True))
    oka.send(ended)
    plane.until(lambda: plane.status(order.order_id) == "succeeded")


def test_an_unfinished_run_on_disk_is_lost_with_its_boot(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.collector(), plane.supervisor()
    order = plane.begun(oka)
    oka.restart(oka.run_beat(order))
    plane.until(lambda: plane.order(order.order_id).generation == 2)


def test_a_claim_that_died_before_its_first_event_is_lost_too(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.collector(), plane.supervisor()
    first = plane.claimed(oka)
    oka.restart()
    assert plane.until(oka.take).generation == 2
    assert (plane.order(first.order_id).attempt, plane.key(oka, first.run_id)) == (0, "revoked:1")


def test_what_still_lies_in_the_queue_survives_a_restart_of_the_drone(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.collector(), plane.supervisor(unclaimed_after=60)
    order_id = plane.submit(drone="oka")
    plane.until(oka.queued)
    oka.restart()
    plane.until(lambda: plane.rows(Drone)[0].boot_id == oka.boot)
    assert (plane.order(order_id).generation, oka.queued()) == (1, 1)


def test_after_a_flushall_a_running_order_does_not_run_twice(plane: Plane, valkey: BrokerServer) -> None:
    oka = plane.drone("oka")
    plane.collector(), plane.supervisor(unclaimed_after=0.2)
    order = plane.begun(oka)
    valkey.redis.flushall()
    waiting = plane.submit(drone="oka")
    assert plane.until(oka.take).order_id == waiting
    oka.report(order, Prepared(), oka.ended())
    plane.until(lambda: plane.status(order.order_id) == "succeeded")
    assert len(plane.rows(Dispatch, Dispatch.order_id == order.order_id)) == 1


def test_a_run_that_was_revoked_by_one_who_died_is_queued_again(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.supervisor()
    order_id = plane.submit(drone="oka")
    order = plane.until(oka.take)
    plane.core.broker.revoke_run(oka.id, order.run_id, 1)
    plane.until(lambda: plane.order(order_id).generation == 2)


def test_hellos_that_come_twice_do_not_lose_what_began_after_them(plane: Plane, valkey: BrokerServer) -> None:
    oka = plane.drone("oka")
    plane.supervisor()
    oka.restart()
    oka.restart()
    order_id = plane.submit()
    order = plane.until(oka.take)
    oka.claim(order)
    oka.report(order, oka.started())
    valkey.redis.execute_command("ACL", "SETUSER", "control", "-xack")
    plane.collector()
    plane.until(lambda: plane.status(order_id) == "running")
    valkey.redis.execute_command("ACL", "SETUSER", "control", "+xack")
    plane.until(lambda: valkey.redis.xlen(names.events_stream(oka.id)) == 0)
    assert (plane.order(order_id).status, plane.rows(Drone)[0].boot_id) == ("running", oka.boot)
