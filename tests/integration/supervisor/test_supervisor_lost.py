"""Runs whose drone fell silent or came back without them, and what becomes of their orders."""

from __future__ import annotations

from datetime import timedelta

from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order
from control_plane.operations.drones import managing
from shared import names
from shared.reasons import RunEnd, RunLoss
from tests.support.broker import BrokerServer
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

LONG_AGO = timedelta(minutes=5)


def fall_silent(plane: Plane, drone: DroneStandIn, since: timedelta = LONG_AGO) -> None:
    """As after some time without a beat: the lease key is gone, and the last sign of life is old."""
    plane.core.broker.redis.delete(names.lease_key(drone.id))
    plane.edit(Drone, drone.id, last_seen_at=plane.core.clock.now() - since)


def test_the_run_of_a_silent_drone_is_lost_and_its_order_queued_again(plane: Plane) -> None:
    silent, renewed, pushing = (plane.drone(name) for name in ("oka", "mila", "vida"))
    plane.collector(), plane.supervisor(lost_after=0.5)
    order, other, granted = (plane.begun(drone) for drone in (silent, renewed, pushing))
    now = plane.core.clock.now()
    # A lease key that is renewed outvotes a subscription that hears nothing.
    plane.edit(Drone, renewed.id, last_seen_at=now - LONG_AGO)
    # An open grant to push is not taken back.
    plane.edit(Order, granted.order_id, grant_until=now + timedelta(seconds=3))
    fall_silent(plane, silent), fall_silent(plane, pushing)
    found = plane.until(lambda: (o := plane.order(order.order_id)).generation == 2 and o)
    assert [(run.status, run.exit_status) for run in found.runs] == [("lost", "lost")]
    assert plane.key(silent, order.run_id) == "revoked:1"
    assert plane.key(pushing, granted.run_id) == f"claimed:1:{pushing.boot}"
    plane.until(lambda: plane.order(granted.order_id).generation == 2)
    assert plane.core.clock.now() >= now + timedelta(seconds=3)
    assert plane.order(other.order_id).status == "running"


def test_the_run_of_a_silent_drone_whose_end_waits_for_a_collector_is_not_lost_unless_for_ever(plane: Plane) -> None:
    ended, without_end, for_ever = (plane.drone(name) for name in ("oka", "mila", "vida"))
    collector = plane.collector()
    plane.supervisor(lost_after=3.0)
    order, other, third = (plane.begun(drone) for drone in (ended, without_end, for_ever))
    plane.stop(collector)
    ended.report(order, ended.ended())
    for_ever.report(third, for_ever.ended())
    fall_silent(plane, for_ever)
    for drone in (ended, without_end):
        fall_silent(plane, drone, timedelta(seconds=4))

    plane.until(lambda: plane.order(other.order_id).generation == plane.order(third.order_id).generation == 2)
    assert plane.order(order.order_id).generation == 1

    plane.collector()
    assert plane.reaches(order.order_id, "succeeded").generation == 1


def test_nothing_is_lost_while_the_own_beat_does_not_come_back(plane: Plane, valkey: BrokerServer) -> None:
    oka = plane.drone("oka")
    plane.collector()
    plane.supervisor(lost_after=0.5)
    order = plane.begun(oka)
    # Everything but the own beat still works: publishing on beat channels alone is taken from the control plane.
    valkey.redis.execute_command(
        "ACL", "SETUSER", "control", "resetchannels", "&fleet:wake", "&fleet:changed*", "&*live"
    )
    fall_silent(plane, oka)
    plane.pass_time(1.5)
    assert plane.order(order.order_id).generation == 1
    valkey.redis.execute_command("ACL", "SETUSER", "control", "allchannels")
    plane.until(lambda: plane.order(order.order_id).generation == 2)


def test_an_order_whose_runs_fail_or_are_lost_three_times_fails(running: Plane, oka: DroneStandIn) -> None:
    order_id = running.submit(drone="oka")
    full = oka.ended(status="failed", exit_status="model_error", order_at_fault=False, reason="the disk is full")
    oka.report(oka.taken(), oka.started(), full)
    for _ in range(2):
        oka.report(oka.taken(), oka.started())
        oka.restart()
    found = running.reaches(order_id, "failed")
    assert (found.exit_status, found.attempt, found.generation) == ("lost", 3, 3)
    restarted = RunLoss(code="drone_restarted", drone="oka")
    assert running.facts(order_id).ended == RunEnd(loss=restarted, attempts=3)
    assert [run.status for run in found.runs] == ["failed", "lost", "lost"]


def test_a_run_of_a_drone_that_was_back_before_it_was_marked_as_sent_or_that_a_dead_one_revoked_is_lost(
    plane: Plane,
) -> None:
    oka = plane.drone("oka")
    plane.collector()
    supervisor = plane.supervisor()
    order, revoked = plane.begun(oka), plane.submit(drone="oka")
    plane.core.broker.revoke_run(oka.id, plane.until(oka.take).run_id, 1)
    plane.until(lambda: plane.order(revoked).generation == 2)
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
    for _ in range(12):
        oka.beat(named)
        plane.round()
    assert plane.order(order.order_id).generation == 1
    plane.until(lambda: oka.beat() or plane.order(order.order_id).generation == 2)


def test_a_drone_whose_clock_is_hours_off_is_alive_while_it_beats_and_lost_when_it_does_not(plane: Plane) -> None:
    drones = [plane.drone(name) for name in ("ahead", "behind")]
    drones[0].ahead, drones[1].ahead = timedelta(hours=2), timedelta(hours=-2)
    plane.collector(), plane.supervisor(lost_after=1.0)
    orders = [plane.begun(drone) for drone in drones]
    for _ in range(6):
        for drone, order in zip(drones, orders, strict=True):
            drone.beat(drone.run_beat(order, doing="thinks", doing_seconds=1, quiet_seconds=1))
        plane.round()
    assert [plane.order(order.order_id).generation for order in orders] == [1, 1]
    assert {managing.show_drone(plane.core, plane.admin, each.name).status for each in drones} <= {"online", "busy"}
    for drone in drones:
        fall_silent(plane, drone)
    plane.until(lambda: all(plane.order(order.order_id).generation == 2 for order in orders))


# --- a drone comes back ---------------------------------------------------------------------


def test_a_hello_loses_runs_without_an_end_and_no_run_that_ended_or_order_that_lies_in_the_queue(plane: Plane) -> None:
    oka = plane.drone("oka", concurrency=4)
    plane.collector(), plane.supervisor(unclaimed_after=60)
    ended, unfinished, claimed = plane.begun(oka), plane.begun(oka), plane.claimed(oka)
    waiting = plane.submit(drone="oka")
    plane.until(oka.queued)
    end = oka.journal(ended, oka.ended())
    oka.restart(oka.run_beat(ended, ended=True), oka.run_beat(unfinished))
    oka.send(end)
    plane.reaches(ended.order_id, "succeeded")
    plane.until(lambda: plane.order(unfinished.order_id).generation == plane.order(claimed.order_id).generation == 2)
    assert (plane.order(claimed.order_id).attempt, plane.key(oka, claimed.run_id)) == (0, "revoked:1")
    assert [plane.order(each).generation for each in (ended.order_id, waiting)] == [1, 1]
    plane.until(lambda: oka.queued() == 3)


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
