"""A drone that fills the broker loses writing and, removed, gives it back; what it is refused is in the audit log."""

from __future__ import annotations

import sqlite3
from contextlib import suppress

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from sqlalchemy import event

from control_plane.broker.broker import Broker
from control_plane.broker.drone_memory import measure
from control_plane.contract.declarations.audit import AuditRecordDocument
from control_plane.db.drones import Drone
from control_plane.drones.quota import quota_bytes
from control_plane.operations.audit.reading import list_records
from control_plane.operations.doctor import server_checks
from control_plane.operations.drones.managing import remove_drone, show_drone
from control_plane.supervisor.broker_access import ACTION, BrokerRefusals
from shared import names
from shared.errors import Unreachable
from tests.support.broker import BrokerServer
from tests.support.planes import LITTLE_MEMORY, Plane, on_each_server
from tests.support.stand_in import DroneStandIn

MB = 1024 * 1024


def fill(drone: DroneStandIn, count: int, size: int = MB) -> None:
    """Write runs that do not exist, in values of this size, until the broker or the fleet refuses."""
    with suppress(redis.exceptions.OutOfMemoryError, redis.exceptions.NoPermissionError):
        for _ in range(count):
            drone.redis.set(names.run_key(drone.id, names.new_id()), "x" * size)


def fill_stream(drone: DroneStandIn, megabytes: int) -> None:
    with drone.redis.pipeline(transaction=False) as pipe:
        for _ in range(megabytes * 10):
            pipe.xadd(names.events_stream(drone.id), {"t": "event", "e": "x" * (MB // 10)})
        pipe.execute()


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


@on_each_server
def test_a_drone_that_fills_the_broker_is_stopped_and_the_others_work_on(small_plane: Plane) -> None:
    plane = small_plane
    oka, mila = plane.drone("oka"), plane.drone("mila")
    supervisor = plane.supervisor()
    begun = plane.claimed(mila)
    plane.stop(supervisor)
    fill(mila, 2 * LITTLE_MEMORY // MB)
    plane.supervisor(quota_pause=3600)
    plane.until(lambda: not may_write(mila))

    plane.until(lambda: held_mb(plane, mila) == 0)
    # A run that exists keeps its key.
    assert plane.key(mila, begun.run_id) == names.claimed(begun.generation, mila.boot)
    order = plane.submit()
    plane.until(lambda: oka.queued() == 1)
    assert may_write(oka)
    assert show_drone(plane.core, plane.admin, "mila").note.endswith("(E-DRONE-QUOTA)")
    assert plane.order(order).drone == "oka"
    records = list(list_records(plane.core, plane.admin, action="exceed_quota"))
    assert [record.actor for record in records] == ["mila"]
    checks = {each.code: each for each in server_checks(plane.core, plane.admin.organization_id)}
    assert "mila (0 MB)" in checks["D-DRONE-QUOTA"].found


def test_the_quota_is_set_or_two_fifths_of_a_small_broker_and_a_stream_of_twice_the_quota_is_deleted(
    small_plane: Plane,
) -> None:
    set_bytes = small_plane.core.settings.drone_broker_mb * MB
    assert [quota_bytes(small_plane.core, limit) for limit in (0, 10 * set_bytes)] == [set_bytes, set_bytes]
    assert quota_bytes(small_plane.core, set_bytes) == int(0.4 * set_bytes)
    mila = small_plane.drone("mila")
    fill_stream(mila, 54)
    small_plane.supervisor(quota_pause=3600)
    small_plane.until(lambda: held_mb(small_plane, mila) == 0)


def test_reports_beyond_the_quota_are_kept_and_read_and_then_the_drone_continues(small_plane: Plane) -> None:
    mila = small_plane.drone("mila")
    fill_stream(mila, 28)
    small_plane.supervisor()
    small_plane.until(lambda: stopped(small_plane, mila))
    assert held_mb(small_plane, mila) >= 28

    small_plane.collector()
    small_plane.until(lambda: may_write(mila))
    small_plane.until(lambda: not stopped(small_plane, mila))


def test_a_drone_that_is_removed_while_it_is_stopped_gets_no_user_again(small_plane: Plane) -> None:
    mila = small_plane.drone("mila")
    fill(mila, 30)
    small_plane.supervisor(users_every=3600)
    small_plane.until(lambda: stopped(small_plane, mila))

    remove_drone(small_plane.core, small_plane.admin, "mila")
    small_plane.pass_time(5)
    assert mila.id not in small_plane.core.broker.users()
    assert list(list_records(small_plane.core, small_plane.admin, action="return_below_quota")) == []


def test_answers_that_nobody_reads_are_deleted(small_plane: Plane) -> None:
    mila = small_plane.drone("mila")
    queue = "-".join("0" * length for length in (8, 4, 4, 4, 12)) + ".reply.celery.pidbox"
    for _ in range(30):
        mila.redis.lpush(queue, "x" * MB)
    small_plane.supervisor()
    small_plane.until(lambda: not small_plane.core.broker.redis.exists(queue))
    assert may_write(mila)


def refuses_writes(filling: DroneStandIn, broker: Broker, other: DroneStandIn) -> bool:
    """Whether nothing can be written for another drone once this one has filled the memory."""
    for size in (MB, 10_000, 200):
        fill(filling, 2 * LITTLE_MEMORY // size, size)
    try:
        broker.offer_run(other.id, names.new_id(), 1)
    except Unreachable as error:
        return "accepts no writes" in str(error)
    return False


@on_each_server
def test_what_a_drone_filled_the_broker_with_goes_with_the_drone(small_plane: Plane) -> None:
    oka, mila = small_plane.drone("oka"), small_plane.drone("mila")
    broker, run = small_plane.core.broker, names.new_id()
    broker.revoke_run(mila.id, run, 1)
    # Again if need be: the server frees the buffers of its connections when it likes, and then there is room for more.
    small_plane.until(lambda: refuses_writes(mila, broker, oka))

    broker.remove_user(mila.id)

    assert broker.memory()[0] < LITTLE_MEMORY // 4
    assert broker.offer_run(oka.id, names.new_id(), 1)
    assert broker.run_keys(mila.id, [run]) == {run: names.revoked(1)}


def test_what_a_drone_had_goes_also_if_it_was_removed_while_the_broker_was_away(
    plane: Plane, valkey: BrokerServer
) -> None:
    mila = plane.drone("mila")
    fill(mila, 1)
    fill_stream(mila, 1)
    valkey.stop()
    remove_drone(plane.core, plane.admin, "mila")
    valkey.start()

    plane.supervisor()
    assert mila.id not in plane.core.broker.users()
    assert mila.id not in measure(plane.core.broker)


def test_what_a_removed_drone_left_without_a_user_is_deleted_but_for_revoked_runs(
    small_plane: Plane, valkey: BrokerServer
) -> None:
    mila, run = small_plane.drone("mila"), names.new_id()
    fill_stream(mila, 28)
    small_plane.core.broker.revoke_run(mila.id, run, 1)
    with valkey.refusing_writes():
        remove_drone(small_plane.core, small_plane.admin, "mila")
    assert mila.id not in small_plane.core.broker.users()

    small_plane.supervisor()
    assert list(measure(small_plane.core.broker)[mila.id].keys) == [names.run_key(mila.id, run)]


# --- what the broker refuses to a drone is in the audit log, in few records


def recorded(plane: Plane) -> list[AuditRecordDocument]:
    return list(list_records(plane.core, plane.admin, action=ACTION, everywhere=True))


def steal(drone: DroneStandIn, *command: str) -> None:
    with pytest.raises(redis.exceptions.NoPermissionError):
        drone.redis.execute_command(*command)


@on_each_server
def test_what_is_refused_to_a_drone_is_recorded_with_its_name_and_how_often(small_plane: Plane) -> None:
    plane = small_plane
    oka, mila = plane.drone("oka"), plane.drone("mila")
    steal(mila, "KEYS", "*")
    rounds = BrokerRefusals(plane.core)
    rounds.record()
    assert recorded(plane) == []

    if plane.core.broker.redis_version() >= (7, 2):
        # It does not keep its refusals out of the log by what it calls itself.
        mila.redis.execute_command("CLIENT", "SETINFO", "LIB-NAME", "a=b=addr=6.6.6.6:6")
    for _ in range(3):
        steal(mila, "RPOP", names.queue(oka.id))
    steal(mila, "CONFIG", "GET", "*")
    rounds.record()
    rounds.record()

    (record,) = recorded(plane)
    assert (record.actor, record.actor_id, record.actor_kind) == ("mila", mila.id, "drone")
    assert (record.outcome, record.code, record.count) == ("refused", "NOPERM", 4)
    assert (record.target, record.address) == (f"config|get, {names.queue(oka.id)}", "127.0.0.1")

    # A refused log-in is of an unknown sender.
    address = dict(oka.redis.connection_pool.connection_kwargs)
    wrong = {"username": oka.id, "password": "guess", "retry": Retry(NoBackoff(), 0)}
    with redis.Redis(port=address["port"], **wrong) as stranger, suppress(redis.RedisError):
        stranger.ping()
    rounds.record()
    found = [(each.target, each.code, each.address) for each in recorded(plane) if each.actor_kind == "unknown"]
    assert found == [(oka.id, "WRONGPASS", "127.0.0.1")]


def test_many_refusals_with_names_that_act_on_terminals_are_one_record(plane: Plane) -> None:
    mila = plane.drone("mila")
    rounds = BrokerRefusals(plane.core)
    rounds.record()
    for number in range(200):
        steal(mila, "LLEN", f"\x1b]0;{number}\x07\0" + "x" * 1000)
    rounds.record()
    (record,) = recorded(plane)
    assert record.target.isprintable()
    assert (len(record.target) <= 255, record.count >= 100) == (True, True)


def test_what_is_refused_before_a_round_without_the_database_is_recorded_in_the_next_one(plane: Plane) -> None:
    mila = plane.drone("mila")
    rounds = BrokerRefusals(plane.core)
    rounds.record()
    steal(mila, "KEYS", "*")

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    event.listen(plane.core.database.engine, "begin", fail, once=True)
    with pytest.raises(sqlite3.OperationalError):
        rounds.record()
    rounds.record()
    rounds.record()
    assert [(each.actor, each.count) for each in recorded(plane)] == [("mila", 1)]
