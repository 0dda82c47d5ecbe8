"""A drone's quota in the broker's memory: beyond it, that drone loses writing, and only that drone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
import redis

from control_plane.broker.broker import Broker
from control_plane.broker.drone_memory import measure
from control_plane.db.drones import Drone
from control_plane.operations.audit.reading import list_records
from control_plane.operations.doctor import server_checks
from control_plane.operations.drones.managing import show_drone
from shared import names
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.planes import Plane, hand_clock, plane_on
from tests.support.stand_in import DroneStandIn

ROOM = 64 * 1024 * 1024
"""Of which one drone may hold two fifths."""
MB = 1024 * 1024


@pytest.fixture
def small_plane(core_factory: CoreFactory, sqlite_url: str, valkey: BrokerServer) -> Iterator[Plane]:
    """A control plane with a broker of little memory."""
    yield from plane_with_little_memory(core_factory, sqlite_url, valkey)


@pytest.fixture
def any_small_plane(core_factory: CoreFactory, sqlite_url: str, broker_server: BrokerServer) -> Iterator[Plane]:
    """Like `small_plane`, on each kind of server."""
    yield from plane_with_little_memory(core_factory, sqlite_url, broker_server)


def plane_with_little_memory(core_factory: CoreFactory, sqlite_url: str, server: BrokerServer) -> Iterator[Plane]:
    before = server.redis.config_get("maxmemory")["maxmemory"]
    server.redis.config_set("maxmemory", ROOM)
    yield from plane_on(core_factory(sqlite_url, broker=Broker(server.url), clock=hand_clock()))
    server.redis.config_set("maxmemory", before)


def fill(drone: DroneStandIn, megabytes: int) -> None:
    """Write runs that do not exist, in values of 1 MB, until the broker or the fleet refuses."""
    with suppress(redis.exceptions.OutOfMemoryError, redis.exceptions.NoPermissionError):
        for _ in range(megabytes):
            drone.redis.set(names.run_key(drone.id, names.new_id()), "x" * MB)


def fill_stream(drone: DroneStandIn, megabytes: int) -> None:
    for _ in range(megabytes * 10):
        drone.redis.xadd(names.events_stream(drone.id), {"t": "event", "e": "x" * (MB // 10)})


def may_write(drone: DroneStandIn) -> bool:
    try:
        with suppress(redis.exceptions.OutOfMemoryError):
            drone.redis.set(names.run_key(drone.id, "0" * 12), "x")
    except redis.exceptions.NoPermissionError:
        return False
    return True


def stopped(plane: Plane, drone: DroneStandIn) -> bool:
    return plane.rows(Drone, Drone.id == drone.id)[0].over_quota_at is not None


def held_mb(plane: Plane, drone: DroneStandIn) -> int:
    return measure(plane.core.broker)[drone.id].size // MB


def test_a_drone_that_fills_the_broker_is_stopped_and_the_others_work_on(any_small_plane: Plane) -> None:
    plane = any_small_plane
    oka, mila = plane.drone("oka"), plane.drone("mila")
    fill(mila, 2 * ROOM // MB)
    plane.supervisor(quota_pause=3600)
    plane.until(lambda: not may_write(mila))

    plane.until(lambda: held_mb(plane, mila) == 0)
    order = plane.submit()
    plane.until(lambda: oka.queued() == 1)
    assert may_write(oka)
    assert show_drone(plane.core, plane.admin, "mila").note.endswith("(E-DRONE-QUOTA)")
    assert plane.order(order).drone == "oka"
    records = list(list_records(plane.core, plane.admin, action="exceed_quota"))
    assert [record.actor for record in records] == ["mila"]
    checks = {each.code: each for each in server_checks(plane.core, plane.admin.organization_id)}
    assert "mila (0 MB)" in checks["D-DRONE-QUOTA"].found


def test_reports_beyond_the_quota_are_kept_and_read_and_then_the_drone_continues(small_plane: Plane) -> None:
    mila = small_plane.drone("mila")
    fill_stream(mila, 28)
    small_plane.supervisor()
    small_plane.until(lambda: stopped(small_plane, mila))
    assert held_mb(small_plane, mila) >= 28

    small_plane.collector()
    small_plane.until(lambda: may_write(mila))
    small_plane.until(lambda: not stopped(small_plane, mila))


def test_a_stream_of_twice_the_quota_is_deleted(small_plane: Plane) -> None:
    mila = small_plane.drone("mila")
    fill_stream(mila, 54)
    small_plane.supervisor(quota_pause=3600)
    small_plane.until(lambda: held_mb(small_plane, mila) == 0)


def test_a_run_that_exists_keeps_its_key(small_plane: Plane) -> None:
    mila = small_plane.drone("mila")
    order = small_plane.submit()
    placing = small_plane.supervisor()
    small_plane.until(lambda: mila.queued() == 1)
    taken = mila.take()
    assert taken
    assert mila.claim(taken)
    # What a drone writes while it is measured stays until it exceeds its quota again.
    placing.stop()
    fill(mila, 30)
    small_plane.supervisor(quota_pause=3600)
    small_plane.until(lambda: not may_write(mila))
    small_plane.until(lambda: held_mb(small_plane, mila) == 0)
    run = small_plane.dispatch(order).id
    assert small_plane.key(mila, run) == names.claimed(taken.generation, mila.boot)


def test_answers_that_nobody_reads_are_deleted(small_plane: Plane) -> None:
    mila = small_plane.drone("mila")
    queue = "-".join("0" * length for length in (8, 4, 4, 4, 12)) + ".reply.celery.pidbox"
    for _ in range(30):
        mila.redis.lpush(queue, "x" * MB)
    small_plane.supervisor()
    small_plane.until(lambda: not small_plane.core.broker.redis.exists(queue))
    assert may_write(mila)
