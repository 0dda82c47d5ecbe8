"""A drone's Redis user reaches what is its own, and nothing else."""

from __future__ import annotations

from hashlib import sha256

import pytest
import redis

from control_plane.broker.broker import Broker
from control_plane.broker.users import DroneUser
from shared import names
from tests.support.broker import BrokerServer

OKA, MILA = "0" * 11 + "a", "0" * 11 + "b"
PASSWORD = "pass/word+"
HASH = sha256(PASSWORD.encode()).hexdigest()


def login(broker: Broker, drone_id: str = OKA) -> redis.Redis:
    return redis.Redis.from_url(broker.drone_url(drone_id, PASSWORD), decode_responses=True)


def test_a_drone_reads_its_queue_and_writes_its_stream(broker: Broker, valkey: BrokerServer) -> None:
    broker.ensure_user(OKA, HASH)
    with login(broker) as drone:
        drone.xadd(names.events_stream(OKA), {"t": "event", "e": "x"})
        drone.publish(names.beat_channel(OKA), "x")
        drone.brpop(names.queue(OKA), timeout=0.01)
    assert valkey.acl_log() == []


@pytest.mark.parametrize(
    "command",
    [
        ("LRANGE", names.queue(MILA), "0", "-1"),
        ("XADD", names.events_stream(MILA), "*", "t", "event"),
        ("GET", names.run_key(MILA, "0" * 12)),
        ("PUBLISH", names.beat_channel(MILA), "x"),
        ("PUBLISH", "/0.celery.pidbox", "shutdown"),
        ("KEYS", "*"),
        ("SCAN", "0"),
        ("FLUSHALL",),
        ("ACL", "LIST"),
        ("CONFIG", "GET", "*"),
        ("SUBSCRIBE", names.live_channel(MILA)),
        ("EVAL", "return redis.call('GET', KEYS[1])", "1", names.run_key(MILA, "0" * 12)),
    ],
    ids=" ".join,
)
def test_what_belongs_to_others_is_refused(broker: Broker, command: tuple[str, ...]) -> None:
    broker.ensure_user(OKA, HASH)
    with login(broker) as drone, pytest.raises(redis.exceptions.NoPermissionError):
        drone.execute_command(*command)


def test_nobody_gets_in_without_a_user(valkey: BrokerServer) -> None:
    with redis.Redis(port=valkey.port) as nobody, pytest.raises(redis.AuthenticationError):
        nobody.ping()


def test_the_recipe_is_understood_by_redis_7_0(redis_server: BrokerServer) -> None:
    broker = Broker(redis_server.url)
    broker.ensure_user(OKA, HASH)
    with login(broker) as drone:
        drone.xadd(names.events_stream(OKA), {"t": "event"})
    assert broker.server().startswith("Redis 7.")
    broker.close()


def test_users_outlive_a_restart(broker: Broker, valkey: BrokerServer) -> None:
    broker.ensure_user(OKA, HASH)
    valkey.restart(kill=True)
    with login(broker) as drone:
        assert drone.llen(names.queue(OKA)) == 0


def test_users_that_the_server_lost_are_made_again_and_surplus_ones_go(broker: Broker) -> None:
    broker.ensure_users({OKA: DroneUser((HASH,)), MILA: DroneUser((HASH,))}, broker.users_by_server())
    broker.redis.acl_deluser(OKA)
    changed = broker.ensure_users({OKA: DroneUser((HASH,))}, broker.users_by_server())
    assert changed == [OKA, MILA]
    assert set(broker.redis.acl_users()) == {"default", "control", OKA}


def test_a_removed_drone_is_cut_off_at_once(broker: Broker) -> None:
    broker.ensure_user(OKA, HASH)
    with login(broker) as drone:
        drone.llen(names.queue(OKA))
        broker.remove_user(OKA)
        with pytest.raises(redis.RedisError):
            drone.llen(names.queue(OKA))
