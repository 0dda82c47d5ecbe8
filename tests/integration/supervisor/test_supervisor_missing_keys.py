"""Runs that were published and whose keys a broker lost: only the drone can tell whether it holds them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from control_plane.db.drones import Drone
from control_plane.declarations.orders import CancelRequest
from control_plane.operations.drones import managing
from control_plane.operations.orders.canceling import cancel
from control_plane.supervisor.outbox_relay import Relay
from control_plane.supervisor.unclaimed import OFFERS, Unclaimed
from shared.events import RunBeat
from shared.work_order import WorkOrder
from tests.support.broker import BrokerServer
from tests.support.planes import QUICK, Plane
from tests.support.stand_in import DroneStandIn

Check = Callable[[], None]


@pytest.fixture
def oka(plane: Plane) -> DroneStandIn:
    plane.collector()
    return plane.drone("oka")


@pytest.fixture
def check(plane: Plane) -> Check:
    """One round over what is unclaimed, without any wait."""
    return Unclaimed(plane.core, Relay(plane.core), replace(QUICK, unclaimed_after=0.0, beat_age=0.0)).check


def published(plane: Plane, oka: DroneStandIn) -> WorkOrder:
    """An order whose message oka has taken from its queue, and not claimed yet."""
    plane.submit()
    Relay(plane.core).publish_all()
    order = oka.take()
    assert order is not None
    return order


def heard(plane: Plane, oka: DroneStandIn, *runs: RunBeat) -> None:
    """Return once a beat that names these runs was written."""
    before = plane.rows(Drone)[0].last_seen_at
    plane.until(lambda: oka.beat(*runs) or plane.rows(Drone)[0].last_seen_at > before)


def test_a_claimed_run_is_not_offered_again_before_its_drone_was_heard(
    plane: Plane, valkey: BrokerServer, oka: DroneStandIn, check: Check
) -> None:
    order = published(plane, oka)
    # A beat from before the key was found missing proves nothing.
    heard(plane, oka)
    oka.claim(order)
    valkey.redis.flushall()
    check(), check()
    assert (plane.key(oka, order.run_id), oka.queued()) == ("", 0)
    heard(plane, oka, oka.run_beat(order))
    check()
    assert (plane.key(oka, order.run_id), oka.queued()) == ("", 0)
    assert cancel(plane.core, plane.admin, order.order_id, CancelRequest()).status == "canceling"


def test_a_run_that_a_later_beat_does_not_name_is_offered_again(
    plane: Plane, valkey: BrokerServer, oka: DroneStandIn, check: Check
) -> None:
    order = published(plane, oka)
    valkey.redis.flushall()
    check()
    heard(plane, oka)
    check()
    assert (plane.key(oka, order.run_id), oka.queued()) == ("dispatched:1", 1)


def test_a_draining_drone_keeps_what_it_may_have_claimed_until_a_later_beat_does_not_name_it(
    plane: Plane, valkey: BrokerServer, oka: DroneStandIn, check: Check
) -> None:
    order = published(plane, oka)
    valkey.redis.flushall()
    managing.drain(plane.core, plane.admin, "oka")
    check(), check()
    assert (plane.key(oka, order.run_id), plane.order(order.order_id).drone) == ("", "oka")
    heard(plane, oka)
    check()
    assert (plane.key(oka, order.run_id), plane.order(order.order_id).status) == ("revoked:1", "queued")


def test_a_run_that_its_drone_takes_again_and_again_without_a_claim_is_replaced(
    plane: Plane, valkey: BrokerServer, oka: DroneStandIn, check: Check
) -> None:
    order = published(plane, oka)
    valkey.redis.flushall()
    check()
    heard(plane, oka)
    for _ in range(OFFERS):
        check()
        assert oka.take().run_id == order.run_id
    check()
    assert (plane.key(oka, order.run_id), plane.status(order.order_id)) == ("revoked:1", "queued")
    assert not oka.claim(order)
