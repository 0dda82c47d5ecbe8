"""Drones that are drained, removed, full, or doubled, and the orders that wait in their queues."""

from __future__ import annotations

import threading
from collections.abc import Callable
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
from tests.support.planes import Plane
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


@pytest.fixture
def oka(running: Plane) -> DroneStandIn:
    """A drone with one slot."""
    return running.drone("oka", concurrency=1)


def test_orders_leave_a_draining_drone_unless_they_named_it_and_what_runs_goes_on(
    plane: Plane, oka: DroneStandIn
) -> None:
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


def test_without_another_drone_they_wait_and_say_for_what_and_go_on_when_it_takes_orders_again(
    plane: Plane, oka: DroneStandIn
) -> None:
    order_id = waiting_on(plane, oka)
    managing.drain(plane.core, plane.admin, "oka")
    plane.reaches(order_id, "queued")
    waits = plane.until(lambda: plane.facts(order_id).waits)
    assert isinstance(waits, NoDroneTakesWork)
    assert [(state.drone, state.code) for state in waits.states] == [("oka", "draining")]
    managing.resume(plane.core, plane.admin, "oka")
    # A drone that still says otherwise is told again.
    plane.until(lambda: oka.beat(draining=True) or False in [message.body.on for message in oka.told("drain")])
    plane.until(lambda: oka.beat() or plane.status(order_id) == "assigned")
    assert plane.until(oka.take).generation == 1
    again = plane.until(oka.take)
    assert (again.generation, oka.claim(again)) == (2, True)


# --- removing ------------------------------------------------------------------------------


def test_a_removed_drone_is_cut_off_at_once_and_its_orders_go_elsewhere_or_say_why_not(
    plane: Plane, oka: DroneStandIn
) -> None:
    running = plane.submit()
    work = oka.taken()
    oka.report(work, oka.started())
    plane.reaches(running, "running")
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


def test_the_most_urgent_order_leaves_a_full_drone_for_a_free_slot_unless_it_named_it_or_fits_nobody_else(
    running: Plane,
) -> None:
    oka = running.drone("oka", concurrency=1, labels={"gpu": "yes"})
    running.begun(oka)
    staying = [waiting_on(running, oka, drone="oka"), waiting_on(running, oka, labels={"gpu": "yes"})]
    plain, urgent = waiting_on(running, oka), waiting_on(running, oka, priority=5)
    # Both must have waited long enough before there is a place for one.
    for _ in range(4):
        oka.beat()
        running.round()
    mila = running.drone("mila", concurrency=1)
    assert running.until(mila.take).order_id == urgent
    assert taken_from_and_placed(running, urgent) == ("oka", "busy", "mila", "free_slot")
    for _ in range(4):
        oka.beat()
        running.round()
    assert [running.order(each).drone for each in (*staying, plain)] == ["oka"] * 3
    assert len(running.rows(Dispatch, Dispatch.order_id == urgent)) == 2


def test_an_order_whose_key_vanished_is_not_taken_from_a_drone_that_may_be_at_work_on_it(
    plane: Plane, oka: DroneStandIn
) -> None:
    plane.begun(oka)
    order_id = waiting_on(plane, oka)
    plane.core.broker.redis.delete(names.run_key(oka.id, plane.dispatch(order_id).id))
    mila = plane.drone("mila", concurrency=1)
    other = plane.submit(drone="mila")
    assert plane.until(mila.take).order_id == other
    assert plane.order(order_id).drone == "oka"


def test_however_a_claim_and_a_move_race_the_order_runs_once(live_plane: Plane) -> None:
    oka = live_plane.drone("oka", concurrency=1)
    # No order is sent again, and no drone counts as gone, because a slow machine takes its time.
    live_plane.collector(), live_plane.supervisor(unclaimed_after=3600)
    live_plane.begun(oka)
    ids = [live_plane.submit() for _ in repeat(None, 16)]
    live_plane.until(lambda: oka.beat() or oka.queued() == 16)
    # The supervisor goes through the queue from its front: from the other end most of them meet.
    messages = [oka.take() for _ in ids][::-1]
    mila = live_plane.drone("mila", concurrency=16)
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


@pytest.mark.chaos
def test_an_ephemeral_drone_that_was_removed_ends_although_its_last_run_is_not_confirmed(
    stand_in: ControlPlaneStandIn, make_drone: MakeDrone, repository: Path, scripted: ScriptedFactory
) -> None:
    drone = make_drone()
    drone.start_worker("--idle", "3600")
    stand_in.ended(stand_in.dispatch(order_for(drone.id, repository, scripted([{"text": "Done."}]).url)))
    stand_in.remove(drone.id)
    assert drone.wait(seconds=60) == 6
