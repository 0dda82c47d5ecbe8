"""Redis is emptied while orders are under way: each ends once, and the database has all of it, from the journals."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shared import names
from shared.events import CommentStep, Prepared
from tests.support import wait_until
from tests.support.broker import BrokerServer
from tests.support.outages import GATE, OutageFleet
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(240), pytest.mark.apart]


def test_a_run_goes_on_and_orders_that_wait_in_its_drones_queue_run_once(oka_at_work: OutageFleet) -> None:
    fleet = oka_at_work
    submitted = [fleet.submit("gated") for _ in range(3)]
    fleet.results(submitted[0], 1)
    wait_until(lambda: fleet.broker.queue_length(fleet.drones[0].id) == 1)
    fleet.server.redis.flushall()
    (fleet.directory / GATE).touch()
    [fleet.whole(order_id, 2) for order_id in submitted]


# --- what a drone's stand-in can hold still -----------------------------------------------------------


def test_a_run_that_redis_forgot_is_lost_when_its_drone_comes_back_without_it(
    plane: Plane, valkey: BrokerServer, oka: DroneStandIn
) -> None:
    plane.collector(), plane.supervisor(unclaimed_after=60.0)
    order = plane.claimed(oka)
    valkey.redis.flushall()
    oka.restart(oka.run_beat(order))
    plane.until(lambda: plane.order(order.order_id).generation == 2)


def test_a_hello_gives_a_run_up_once_what_its_drone_recorded_is_stored(running: Plane, oka: DroneStandIn) -> None:
    order = running.begun(oka)
    events = [oka.journal(order, body) for body in (Prepared(base_commit=None), CommentStep(text="half done"))]
    oka.restart(oka.run_beat(order))
    asked = running.until(lambda: oka.told("resend"))[0].body
    assert (asked.run_id, asked.from_seq) == (order.run_id, 2)
    assert running.order(order.order_id).generation == 1
    [oka.send(event) for event in events]
    found = running.until(lambda: (o := running.order(order.order_id)).generation == 2 and o)
    kinds = ["run_started", "prepared", "comment"]
    assert [(step.kind, step.late) for step in found.steps] == [(kind, False) for kind in kinds]


def test_a_hello_waits_for_steps_only_so_long_and_is_overtaken_by_the_next(
    plane: Plane, valkey: BrokerServer, oka: DroneStandIn
) -> None:
    plane.collector(hello_wait=5.0), plane.supervisor()
    for again in (False, True):
        order = plane.begun(oka)
        oka.journal(order, CommentStep(text="lost with the disk"))
        oka.restart(oka.run_beat(order))
        plane.until(lambda run=order.run_id: run in [message.body.run_id for message in oka.told("resend")])
        before = plane.core.clock.now()
        if again:
            oka.restart()
        plane.until(lambda order_id=order.order_id: plane.order(order_id).generation == 2)
        assert (plane.core.clock.now() - before < timedelta(seconds=4)) is again
        plane.until(lambda: valkey.redis.xlen(names.events_stream(oka.id)) == 0)
