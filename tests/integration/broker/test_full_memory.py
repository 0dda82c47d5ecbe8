"""A drone fills the broker's memory with its own keys: removing the drone gives all of it back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
import redis

from control_plane.broker.broker import Broker
from shared import names
from shared.errors import Unreachable
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.planes import Plane, hand_clock, plane_on
from tests.support.stand_in import DroneStandIn

ROOM = 64 * 1024 * 1024


@pytest.fixture
def small_server(broker_server: BrokerServer) -> Iterator[BrokerServer]:
    """Each kind of server, with little memory."""
    before = broker_server.redis.config_get("maxmemory")["maxmemory"]
    broker_server.redis.config_set("maxmemory", ROOM)
    yield broker_server
    broker_server.redis.config_set("maxmemory", before)


@pytest.fixture
def small_plane(core_factory: CoreFactory, sqlite_url: str, small_server: BrokerServer) -> Iterator[Plane]:
    yield from plane_on(core_factory(sqlite_url, broker=Broker(small_server.url), clock=hand_clock()))


def fill(drone: DroneStandIn) -> None:
    """Write until the broker takes no more, in smaller and smaller pieces; never more than its limit twice."""
    for size in (1024 * 1024, 10_000, 200):
        with suppress(redis.exceptions.OutOfMemoryError):
            for _ in range(2 * ROOM // size):
                drone.redis.set(names.run_key(drone.id, names.new_id()), "x" * size)


def refuses_writes(filling: DroneStandIn, broker: Broker, other: DroneStandIn) -> bool:
    """Whether nothing can be written for another drone once this one has filled the memory."""
    fill(filling)
    try:
        broker.offer_run(other.id, names.new_id(), 1)
    except Unreachable as error:
        return "accepts no writes" in str(error)
    return False


def test_what_a_drone_filled_the_broker_with_goes_with_the_drone(small_plane: Plane) -> None:
    oka, mila = small_plane.drone("oka"), small_plane.drone("mila")
    small_plane.submit(drone="oka")
    broker, run = small_plane.core.broker, names.new_id()
    broker.revoke_run(mila.id, run, 1)
    # Again if need be: the server frees the buffers of its connections when it likes, and then there is room for more.
    small_plane.until(lambda: refuses_writes(mila, broker, oka))

    broker.remove_user(mila.id)

    assert broker.memory()[0] < ROOM // 4
    assert broker.offer_run(oka.id, names.new_id(), 1)
    assert broker.run_keys(mila.id, [run]) == {run: names.revoked(1)}
