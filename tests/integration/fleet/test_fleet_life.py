"""Drones that are drained, removed, full, or doubled, and the orders that wait in their queues."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from datetime import timedelta
from itertools import repeat
from pathlib import Path

import pytest
import redis

from control_plane.db.orders import Dispatch
from control_plane.operations.drones import managing
from shared import names
from shared.reasons import InQueue, NamedDroneRemoved, NoDroneTakesWork, TakenBack
from shared.work_order import WorkOrder
from tests.support import wait_until
from tests.support.control_stand_in import ControlPlaneStandIn
from tests.support.drones import DroneUnderTest
from tests.support.planes import QUICK, Plane
from tests.support.runs import order_for, shell
from tests.support.scripted import ScriptedFactory
from tests.support.stand_in import DroneStandIn

MakeDrone = Callable[..., DroneUnderTest]
HOLD = [shell("echo begun; sleep 300"), {"text": "Done."}]


def taken_from_and_placed(plane: Plane, order_id: str) -> tuple[str, str, str, str]:
    """The drone that an order was taken back from and its state, the drone that has it now and the ground for that."""
    facts = plane.facts(order_id)
    assert isinstance(facts.returned, TakenBack)
    assert facts.placed is not None
    return facts.returned.state.drone, facts.returned.state.code, facts.placed.drone, facts.placed.code


def waiting_on(plane: Plane, holder: DroneStandIn, /, **fields: object) -> str:
    """An order that lies in the drone's queue."""
    before = holder.queued()
    order_id = plane.submit(**fields)
    plane.until(lambda: holder.queued() == before + 1)
    assert plane.order(order_id).drone == holder.name
    return order_id


# --- draining ------------------------------------------------------------------------------


def test_orders_leave_a_draining_drone_unless_they_named_it_and_what_runs_goes_on(plane: Plane) -> None:
    oka = plane.drone("oka", concurrency=1)
    plane.collector(), plane.supervisor()
    running = plane.begun(oka).order_id
    free, named = waiting_on(plane, oka), waiting_on(plane, oka, drone="oka")
    managing.drain(plane.core, plane.admin, "oka")
    plane.drone("mila")
    plane.until(lambda: plane.order(free).drone == "mila")
    assert taken_from_and_placed(plane, free) == ("oka", "draining", "mila", "only_drone")

    def why_named_waits() -> tuple[str, str] | None:
        waits = plane.facts(named).waits
        return (waits.state.drone, waits.state.code) if isinstance(waits, InQueue) else None

    # Before the drain it waited because oka was busy; that is explained anew in the supervisor's next round.
    plane.until(lambda: why_named_waits() == ("oka", "draining"))
    assert [(plane.order(each).status, plane.order(each).drone) for each in (named, running)] == [
        ("assigned", "oka"),
        ("running", "oka"),
    ]


def test_without_another_drone_they_wait_and_say_for_what_and_go_on_when_it_takes_orders_again(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.collector(), plane.supervisor()
    order_id = waiting_on(plane, oka)
    managing.drain(plane.core, plane.admin, "oka")
    plane.until(lambda: plane.status(order_id) == "queued")
    waits = plane.until(lambda: plane.facts(order_id).waits)
    assert isinstance(waits, NoDroneTakesWork)
    assert [(state.drone, state.code) for state in waits.states] == [("oka", "draining")]
    managing.resume(plane.core, plane.admin, "oka")
    plane.until(lambda: plane.status(order_id) == "assigned")
    assert plane.until(oka.take).generation == 1
    again = plane.until(oka.take)
    assert (again.generation, oka.claim(again)) == (2, True)


def test_a_drone_that_says_otherwise_is_told_again(plane: Plane) -> None:
    oka = plane.drone("oka")
    plane.collector(), plane.supervisor()
    oka.beat(draining=True)
    plane.until(lambda: managing.show_drone(plane.core, plane.admin, "oka").status == "draining")
    managing.resume(plane.core, plane.admin, "oka")
    plane.until(lambda: [message.body.on for message in oka.told("drain")] == [False])


# --- removing ------------------------------------------------------------------------------


def test_a_removed_drone_is_cut_off_at_once_and_its_orders_go_elsewhere_or_say_why_not(plane: Plane) -> None:
    oka = plane.drone("oka", concurrency=1)
    plane.collector(), plane.supervisor()
    running = plane.submit()
    work = plane.until(oka.take)
    assert oka.claim(work)
    oka.report(work, oka.started())
    plane.until(lambda: plane.status(running) == "running")
    free, named = waiting_on(plane, oka), waiting_on(plane, oka, drone="oka")
    mila = plane.drone("mila")
    managing.remove_drone(plane.core, plane.admin, "oka")
    with pytest.raises(redis.ConnectionError):
        oka.queued()
    assert plane.order(running).runs[0].status == "lost"
    plane.until(lambda: mila.queued() == 2)
    assert taken_from_and_placed(plane, free)[:3] == ("oka", "removed", "mila")
    assert plane.facts(named).waits == NamedDroneRemoved(drone="oka", order=named)
    assert keys_of(plane, oka) == set()


def keys_of(plane: Plane, drone: DroneStandIn) -> set[str]:
    """What the broker still has of a drone besides the keys of its runs, which stay for their week.

    Nor its stream: a collector that was reading it just then makes it again, empty.
    """
    found = {str(key) for key in plane.core.broker.redis.scan_iter(f"*{drone.id}*")}
    return {key for key in found if ":run:" not in key and not key.endswith(":events")}


# --- rebalancing ---------------------------------------------------------------------------


def test_an_order_leaves_a_full_drone_for_one_that_has_a_free_slot_and_stays_there(plane: Plane) -> None:
    oka = plane.drone("oka", concurrency=1)
    plane.collector(), plane.supervisor()
    plane.begun(oka)
    first, second = waiting_on(plane, oka), waiting_on(plane, oka)
    mila = plane.drone("mila", concurrency=1)
    assert plane.until(mila.take).order_id == first
    assert taken_from_and_placed(plane, first) == ("oka", "busy", "mila", "free_slot")
    still_there = [plane.order(second).drone for _ in repeat(None, 20) if oka.beat() is None]
    assert set(still_there) == {"oka"}
    assert len(plane.rows(Dispatch, Dispatch.order_id == first)) == 2


def test_the_most_urgent_order_is_moved_first_and_those_that_named_the_drone_or_fit_nobody_else_never(
    plane: Plane,
) -> None:
    oka = plane.drone("oka", concurrency=1, labels={"gpu": "yes"})
    plane.collector(), plane.supervisor()
    plane.begun(oka)
    staying = [waiting_on(plane, oka, drone="oka"), waiting_on(plane, oka, labels={"gpu": "yes"})]
    plain, urgent = waiting_on(plane, oka), waiting_on(plane, oka, priority=5)
    # Both must have waited long enough before there is a place for one.
    until = plane.core.clock.now() + timedelta(seconds=2 * QUICK.rebalance_after)
    plane.until(lambda: oka.beat() or plane.core.clock.now() > until)
    mila = plane.drone("mila", concurrency=1)
    assert plane.until(mila.take).order_id == urgent
    assert [plane.order(each).drone for each in (*staying, plain)] == ["oka"] * 3


def test_an_order_whose_key_vanished_is_not_taken_from_a_drone_that_may_be_at_work_on_it(plane: Plane) -> None:
    oka = plane.drone("oka", concurrency=1)
    plane.collector(), plane.supervisor()
    plane.begun(oka)
    order_id = waiting_on(plane, oka)
    plane.core.broker.redis.delete(names.run_key(oka.id, plane.dispatch(order_id).id))
    mila = plane.drone("mila", concurrency=1)
    other = plane.submit(drone="mila")
    assert plane.until(mila.take).order_id == other
    assert plane.order(order_id).drone == "oka"


def test_however_a_claim_and_a_move_race_the_order_runs_once(live_plane: Plane) -> None:
    oka = live_plane.drone("oka", concurrency=1)
    live_plane.collector(), live_plane.supervisor()
    live_plane.begun(oka)
    ids = [live_plane.submit() for _ in repeat(None, 24)]
    live_plane.until(lambda: oka.queued() == 24)
    # The supervisor goes through the queue from its front: from the other end most of them meet.
    messages = [oka.take() for _ in ids][::-1]
    mila = live_plane.drone("mila", concurrency=24)
    claimed: list[str] = []
    works = iter(messages)
    takes = ((oka, lambda: next(works, None)), (mila, mila.take))
    threads = [threading.Thread(target=claim_all, args=(drone, take, len(ids), claimed)) for drone, take in takes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    live_plane.until(lambda: {live_plane.status(each) for each in ids} == {"running"})
    assert sorted(claimed) == sorted(ids)
    assert {live_plane.order(each).drone for each in ids} == {"oka", "mila"}
    assert [len(live_plane.order(each).runs) for each in ids] == [1] * len(ids)


def claim_all(drone: DroneStandIn, take: Callable[[], WorkOrder | None], number: int, claimed: list[str]) -> None:
    """Take what comes, claim it, and begin, until so many orders were claimed by somebody."""

    def one() -> bool:
        drone.beat()
        work = take()
        if work is not None and drone.claim(work):
            claimed.append(work.order_id)
            drone.report(work, drone.started())
        return len(claimed) >= number

    wait_until(one)


# --- a drone's own end ---------------------------------------------------------------------


@pytest.mark.chaos
def test_a_drone_that_was_removed_ends_by_itself_with_its_run_and_says_why(
    stand_in: ControlPlaneStandIn, make_drone: MakeDrone, repository: Path, scripted: ScriptedFactory
) -> None:
    drone = make_drone()
    drone.start()
    sent = stand_in.dispatch(order_for(drone.id, repository, scripted(HOLD).url))
    wait_until(lambda: "tool_call" in stand_in.kinds(sent), seconds=60)
    stand_in.remove(drone.id)
    assert drone.wait(seconds=60) == 6
    assert "drone oka was removed" in drone.stderr()
    assert "Traceback" not in drone.stderr()
    assert drone.processes() == []
    drone.start()
    assert drone.wait(seconds=60) == 6


@pytest.mark.chaos
@pytest.mark.long
def test_a_drone_whose_user_the_broker_forgot_goes_on_when_it_is_back(
    stand_in: ControlPlaneStandIn, make_drone: MakeDrone, repository: Path, scripted: ScriptedFactory
) -> None:
    drone = make_drone()
    drone.start_worker()
    drone.wait_consuming()
    user = stand_in.broker.redis.acl_getuser(drone.id)
    stand_in.broker.redis.acl_deluser(drone.id)
    wait_until(lambda: "heartbeats cannot be sent" in drone.log())
    stand_in.broker.ensure_user(drone.id, user["passwords"][0].removeprefix("#"))
    sent = stand_in.dispatch(order_for(drone.id, repository, scripted([{"text": "Done."}]).url))
    assert stand_in.ended(sent, seconds=60).status == "success"


@pytest.mark.chaos
def test_of_two_machines_with_one_id_the_later_works_and_the_first_ends_when_it_comes_back(
    stand_in: ControlPlaneStandIn, make_drone: MakeDrone, tmp_path: Path
) -> None:
    drone = make_drone()
    drone.start_worker()
    drone.wait_consuming()
    wait_until(lambda: stand_in.beats(drone.id))
    assert drone.process is not None
    os.kill(drone.process.pid, signal.SIGSTOP)
    stand_in.broker.redis.delete(names.lease_key(drone.id))
    with drone.copied_to(tmp_path / "twin") as twin:
        twin.start_worker()
        wait_until(lambda: len(stand_in.hellos(drone.id)) == 2)
        wait_until(lambda: boot_of(stand_in, drone) == twin.home.boot_file.read_text().strip())
        os.kill(drone.process.pid, signal.SIGCONT)
        assert drone.wait(seconds=60) == 4
        assert "another drone is running with this drone's id" in drone.stderr()
        after = len(stand_in.beats(drone.id))
        wait_until(lambda: len(stand_in.beats(drone.id)) >= after + 2)
        assert not any(beat.stopping for beat in stand_in.beats(drone.id))
        assert stand_in.broker.lease(drone.id).partition(":")[0] == boot_of(stand_in, drone)
        assert twin.stop() == 0


@pytest.mark.chaos
@pytest.mark.long
def test_a_broker_that_was_restored_from_an_older_copy_does_not_end_the_drone(
    stand_in: ControlPlaneStandIn, make_drone: MakeDrone
) -> None:
    drone = make_drone()
    drone.start_worker()
    drone.wait_consuming()
    wait_until(lambda: stand_in.beats(drone.id))
    boot = boot_of(stand_in, drone)
    stand_in.broker.redis.mset({names.boot_key(drone.id): "older", names.lease_key(drone.id): "older:then"})
    wait_until(lambda: boot_of(stand_in, drone) == boot, seconds=60)
    assert drone.stop() == 0


def boot_of(fleet: ControlPlaneStandIn, drone: DroneUnderTest) -> str:
    return str(fleet.broker.redis.get(names.boot_key(drone.id)))
