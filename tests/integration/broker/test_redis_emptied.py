"""Redis is emptied while orders are under way: each ends once, and the database has all of it, from the journals."""

from __future__ import annotations

from pathlib import Path

import pytest

from control_plane.declarations import orders
from drone.reporting import journal
from drone.runs.directory import RunDirectory
from shared import names
from shared.events import CommentStep, Prepared
from shared.states import OrderStatus
from tests.support import wait_until
from tests.support.broker import BrokerServer
from tests.support.outages import OutageFleet, power_cut
from tests.support.planes import Plane

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(240), pytest.mark.apart]


def test_a_last_event_that_nobody_had_collected_is_fetched_from_the_journal(oka_at_work: OutageFleet) -> None:
    fleet = oka_at_work
    order_id = fleet.submit("gated")
    fleet.results(order_id, 1)
    workspace = Path(fleet.bodies(order_id, "tool_result")[0]["output"].splitlines()[0])
    fleet.stop()
    (workspace / "go").touch()
    wait_until(lambda: all_sent(fleet.run_of(order_id)), seconds=60)
    fleet.server.redis.flushall()
    fleet.start()
    fleet.whole(order_id, 3)


def test_a_cancel_ends_with_its_receipt(oka_at_work: OutageFleet) -> None:
    fleet = oka_at_work
    order_id = fleet.submit("stubborn")
    wait_until(lambda: "tool_call" in fleet.kinds(order_id), seconds=60)
    fleet.api.client.call(orders.CANCEL, order_id=order_id)
    fleet.server.redis.flushall()
    order = fleet.ended(order_id)
    assert order.status == "canceled"
    assert order.receipt is not None
    assert (order.receipt["survivors"], order.receipt["unreachable_since"]) == (0, None)
    assert fleet.kinds(order_id)[-1] == "run_ended"
    assert order.attempt == 1


@pytest.mark.parametrize("what_is_lost", ["everything", pytest.param("the keys", marks=pytest.mark.long)])
def test_a_run_goes_on_and_orders_that_wait_in_its_drones_queue_run_once(
    oka_at_work: OutageFleet, what_is_lost: str
) -> None:
    fleet = oka_at_work
    submitted = [fleet.submit("three") for _ in range(3)]
    fleet.results(submitted[0], 1)
    wait_until(lambda: fleet.broker.queue_length(fleet.drones[0].id) == 1)
    lose(fleet, what_is_lost)
    [fleet.whole(order_id, 3) for order_id in submitted]


def lose(fleet: OutageFleet, what: str) -> None:
    """All of Redis, or the runs' keys alone, so that the messages are there and say nothing any more."""
    names_of_all = names.run_key(fleet.drones[0].id, "*") if what == "the keys" else "*"
    fleet.server.redis.delete(*fleet.server.redis.keys(names_of_all))


def all_sent(run: RunDirectory) -> bool:
    """Whether the run has ended, and all of its journal is in the stream."""
    return run.end() is not None and run.sent.read_text() == str(run.journal.stat().st_size)


# --- a drone that dies meanwhile --------------------------------------------------------------------


@pytest.mark.long
def test_the_steps_of_a_drone_that_died_are_stored_before_its_run_is_given_up(outages: OutageFleet) -> None:
    fleet = outages
    drone = fleet.started("oka")
    order_id = fleet.submit("long")
    wait_until(lambda: "tool_call" in fleet.kinds(order_id), seconds=60)
    fleet.stop()
    run = fleet.run_of(order_id)
    wait_until(lambda: len(list(journal.walk(run.journal))) > len(fleet.kinds(order_id)) + 2, seconds=60)
    power_cut(drone)
    recorded = [line.event for line in journal.walk(run.journal)]
    fleet.server.redis.flushall()
    fleet.start()
    drone.start()
    wait_until(lambda: fleet.order(order_id).generation == 2, seconds=60)
    order = fleet.order(order_id)
    stored = [step for step in order.steps if step.run == run.run_id]
    # After what it recorded itself comes what its next boot says of its end.
    assert [step.kind for step in stored][: len(recorded)] == [event.body.kind for event in recorded]
    assert not any(step.late for step in stored)
    went_on = wait_until(lambda: fleet.bodies(order_id, "resumed"), seconds=60)
    assert went_on[0]["seq"] == max(event.seq for event in recorded if event.body.kind == "checkpoint")


@pytest.mark.long
def test_a_broker_that_comes_back_without_its_users_gets_them_again(forgetful_fleet: OutageFleet) -> None:
    fleet = forgetful_fleet
    drone = fleet.started("oka", concurrency=2)
    order_id = fleet.submit("ten")
    fleet.results(order_id, 2)
    fleet.server.restart(kill=True)
    wait_until(drone.consumes)
    fleet.whole(order_id, 10)
    fleet.whole(fleet.submit("three"), 3)


# --- what a drone's stand-in can hold still -----------------------------------------------------------


def test_a_run_that_was_claimed_and_not_heard_of_is_reported_from_its_journal(
    plane: Plane, valkey: BrokerServer
) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor(unclaimed_after=60.0)
    order_id = plane.submit()
    order = plane.until(oka.take)
    oka.claim(order)
    oka.journal(order, oka.started())
    valkey.redis.flushall()
    plane.until(lambda: oka.beat(oka.run_beat(order)) or oka.told("resend"))
    [oka.send(event) for event in oka.journals[order.run_id]]
    plane.until(lambda: plane.status(order_id) == OrderStatus.RUNNING)
    assert plane.order(order_id).generation == 1


def test_a_run_that_redis_forgot_is_lost_when_its_drone_comes_back_without_it(
    plane: Plane, valkey: BrokerServer
) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor(unclaimed_after=60.0)
    order = plane.claimed(oka)
    valkey.redis.flushall()
    oka.restart(oka.run_beat(order))
    plane.until(lambda: plane.order(order.order_id).generation == 2)


def test_a_hello_gives_a_run_up_once_what_its_drone_recorded_is_stored(plane: Plane, valkey: BrokerServer) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    order = plane.begun(oka)
    events = [oka.journal(order, body) for body in (Prepared(base_commit=None), CommentStep(text="half done"))]
    oka.restart(oka.run_beat(order))
    asked = plane.until(lambda: oka.told("resend"))[0].body
    assert (asked.run_id, asked.from_seq) == (order.run_id, 2)
    assert plane.order(order.order_id).generation == 1
    [oka.send(event) for event in events]
    found = plane.until(lambda: (o := plane.order(order.order_id)).generation == 2 and o)
    assert [(step.kind, step.late) for step in found.steps] == [
        *(("run_started", False), ("prepared", False), ("comment", False))
    ]


def test_a_hello_waits_for_steps_only_so_long(plane: Plane, valkey: BrokerServer) -> None:
    oka = plane.drone()
    plane.collector(hello_wait=0.5), plane.supervisor()
    order = plane.begun(oka)
    oka.journal(order, CommentStep(text="never sent"))
    oka.restart(oka.run_beat(order))
    plane.until(lambda: plane.order(order.order_id).generation == 2)
    plane.until(lambda: valkey.redis.xlen(names.events_stream(oka.id)) == 0)


def test_a_hello_that_waits_is_overtaken_by_the_next(plane: Plane, valkey: BrokerServer) -> None:
    oka = plane.drone()
    plane.collector(), plane.supervisor()
    order = plane.begun(oka)
    oka.journal(order, CommentStep(text="lost with the disk"))
    oka.restart(oka.run_beat(order))
    plane.until(lambda: oka.told("resend"))
    oka.restart()
    plane.until(lambda: plane.order(order.order_id).generation == 2)
    plane.until(lambda: valkey.redis.xlen(names.events_stream(oka.id)) == 0)
