"""A drone's Redis user reaches what is its own, and nothing else."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from control_plane.broker.broker import Broker
from control_plane.broker.users import DroneUser
from shared import names
from tests.support.broker import BrokerServer

OKA, MILA = "0" * 11 + "a", "0" * 11 + "b"
PASSWORD = "pass/word+"
HASH = sha256(PASSWORD.encode()).hexdigest()
AT_ONCE = Retry(NoBackoff(), 0)
"""Without it, a refused login is tried again for seconds."""


def login(broker: Broker, drone_id: str = OKA) -> redis.Redis:
    return redis.Redis.from_url(broker.drone_url(drone_id, PASSWORD), decode_responses=True)


def test_a_drone_reads_its_queue_and_writes_its_stream(broker: Broker, valkey: BrokerServer) -> None:
    broker.ensure_user(OKA, HASH)
    with login(broker) as drone:
        drone.xadd(names.events_stream(OKA), {"t": "event", "e": "x"})
        drone.publish(names.beat_channel(OKA), "x")
        drone.brpop(names.queue(OKA), timeout=0.01)
    assert valkey.acl_log() == []


def test_users_outlive_a_restart_and_a_removed_drone_is_cut_off_at_once(broker: Broker, valkey: BrokerServer) -> None:
    broker.ensure_user(OKA, HASH)
    valkey.restart(kill=True)
    with login(broker) as drone:
        assert drone.llen(names.queue(OKA)) == 0
        broker.remove_user(OKA)
        with pytest.raises(redis.RedisError):
            drone.llen(names.queue(OKA))


def test_users_that_the_server_lost_are_made_again_and_surplus_ones_go(broker: Broker) -> None:
    broker.ensure_users({OKA: DroneUser((HASH,)), MILA: DroneUser((HASH,))}, broker.users_by_server())
    broker.redis.acl_deluser(OKA)
    changed = broker.ensure_users({OKA: DroneUser((HASH,))}, broker.users_by_server())
    assert changed == [OKA, MILA]
    assert set(broker.redis.acl_users()) == {"default", "control", OKA}


# --- what a broker accepted is there after it restarts


def test_transactions_and_scripts_with_several_writes_are_there_after_a_restart(broker_server: BrokerServer) -> None:
    """Redis 7.0 executes its file as the default user, and drops them if that user may not write."""
    with broker_server.redis.pipeline(transaction=True) as pipe:
        pipe.set("one", 1)
        pipe.set("two", 2)
        pipe.execute()
    broker_server.redis.eval("redis.call('SET', 'three', 3); redis.call('SET', 'four', 4)", 0)

    broker_server.restart()

    assert broker_server.redis.mget("one", "two", "three", "four") == ["1", "2", "3", "4"]
    logins: tuple[dict[str, Any], ...] = ({}, {"username": "default"}, {"username": "default", "password": "default"})
    for login in logins:
        with (
            redis.Redis(port=broker_server.port, retry=AT_ONCE, **login) as stranger,
            pytest.raises(redis.exceptions.AuthenticationError),
        ):
            stranger.set("one", 1)
