"""A drone's user has the commands that a drone needs, for the keys that they are for; on Valkey and on Redis 7.0."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from control_plane.broker.bindings import ensure_bindings
from control_plane.broker.broker import WAKE, Broker
from shared import names
from tests.support.broker import BrokerServer

OKA, MILA = "0" * 11 + "a", "0" * 11 + "b"
PASSWORD = "pass"
HASH = sha256(PASSWORD.encode()).hexdigest()
PIDBOX = "_kombu.binding.celery.pidbox"
BINDINGS = (PIDBOX, "_kombu.binding.reply.celery.pidbox", "_kombu.binding.celeryev", "_kombu.binding_deadlines")
# fmt: off
ALLOWED = {
    "ping", "info", "client|setinfo",
    "multi", "exec", "discard", "watch", "unwatch",
    "subscribe", "unsubscribe", "psubscribe", "punsubscribe", "publish",
    "get", "set", "del", "xadd", "memory|usage", "hgetall",
    "llen", "brpop", "rpop", "lpush", "smembers",
}
# fmt: on
WITHOUT_WRITING = ALLOWED - {"xadd", "lpush"}
"""What a drone beyond its quota still has."""
RIGHTS: dict[str, dict[str, bool]] = {
    "own": {},
    "beyond quota": {"may_write": False},
}
"""The users that a drone can have."""
FOREIGN_CHANNELS = (
    "*",
    "fleet:*",
    "__keyspace@*",
    "__keyevent@0__:set",
    "/0.*",
    names.control_channel(MILA),
    names.control_channel("*"),
    names.live_channel(MILA),
    names.beat_channel(MILA),
    names.ORDER_CHANGED,
    names.ORDER_ROW_CHANGED,
    WAKE,
)


@pytest.fixture
def server_broker(broker_server: BrokerServer) -> Iterator[Broker]:
    """A control plane's connection to each kind of server."""
    made = Broker(broker_server.url)
    yield made
    made.close()


@contextmanager
def login(broker: Broker, *, may_write: bool = True) -> Iterator[redis.Redis]:
    broker.ensure_user(OKA, HASH, may_write=may_write)
    with redis.Redis.from_url(broker.drone_url(OKA, PASSWORD), decode_responses=True) as drone:
        yield drone


def commands(broker: Broker) -> Iterator[tuple[str, int]]:
    """Every command of the server and its arity, without those that hold others and those that need no login."""
    broker.redis.set_response_callback("COMMAND", lambda answer, **_: answer)
    waiting: list[Any] = list(broker.redis.execute_command("COMMAND"))
    while waiting:
        name, arity, flags, *_, inner = waiting.pop()
        waiting += inner
        if not inner and "no_auth" not in flags:
            yield name, arity


def refused(drone: redis.Redis, *command: str) -> bool:
    try:
        drone.execute_command(*command)
    except redis.exceptions.NoPermissionError:
        return True
    except redis.ResponseError as error:
        # DEBUG and MODULE are switched off for every user, which is checked first.
        return "command not allowed" in str(error)
    return False


def test_every_command_outside_the_list_is_refused(server_broker: Broker) -> None:
    known = dict(commands(server_broker))
    granted = {}
    for rights, allowed in (("own", ALLOWED), ("beyond quota", WITHOUT_WRITING)):
        with login(server_broker, **RIGHTS[rights]) as drone:
            granted[rights] = [
                name
                for name, arity in known.items()
                if name not in allowed
                and not refused(drone, *(words := name.split("|")), *[names.lease_key(OKA)] * (abs(arity) - len(words)))
            ]
    assert len(known) > 300 + len(ALLOWED)
    assert granted == {"own": [], "beyond quota": []}
    optional = set() if server_broker.redis_version() >= (7, 2) else {"client|setinfo"}
    assert ALLOWED - set(known) == optional


def test_a_drone_beyond_its_quota_adds_to_none_of_its_own_keys(server_broker: Broker) -> None:
    queue, run = names.queue(OKA), names.run_key(OKA, "0" * 12)
    writes = [
        ("SET", run, "x"),
        ("DEL", run),
        ("XADD", names.events_stream(OKA), "*", "t", "x"),
        ("LPUSH", queue, "x"),
        ("LPUSH", f"{queue}\x06\x163", "x"),
        ("LPUSH", f"{'-'.join('0' * length for length in (8, 4, 4, 4, 12))}.reply.celery.pidbox", "x"),
        ("SET", names.inbox_key(OKA), "x"),
    ]
    with login(server_broker, may_write=False) as drone:
        allowed = [write for write in writes if not refused(drone, *write)]
        assert drone.set(names.lease_key(OKA), "x")
    assert allowed == []


def test_a_drone_looks_into_the_mailboxes_of_its_own_worker_alone(server_broker: Broker) -> None:
    named = [names.worker(OKA, "host", name) for name in ("oka", "a.b_c-", f"x.{MILA}")]
    foreign = [names.worker(MILA, "host", name) for name in ("", "mila", OKA)]
    for rights in ("own", "beyond quota"):
        with login(server_broker, **RIGHTS[rights]) as drone:
            denied = [each for each in named if refused(drone, "LLEN", f"{each}.celery.pidbox")]
            allowed = [each for each in foreign if not refused(drone, "LLEN", f"{each}.celery.pidbox")]
            written = [each for each in named if not refused(drone, "LPUSH", f"{each}.celery.pidbox", "x")]
        assert (rights, denied, allowed, written) == (rights, [], [], [])


def test_keys_and_channels_of_others_are_refused(server_broker: Broker) -> None:
    foreign = [
        ("LLEN", names.queue(MILA)),
        ("BRPOP", names.queue(MILA), "1"),
        ("XADD", names.events_stream(MILA), "*", "t", "event"),
        ("GET", names.run_key(MILA, "0" * 12)),
        ("SET", names.lease_key(MILA), "x"),
        ("MEMORY", "USAGE", names.queue(MILA)),
        ("PUBLISH", names.beat_channel(MILA), "x"),
        ("PUBLISH", "/0.celery.pidbox", "shutdown"),
        *((command, channel) for channel in FOREIGN_CHANNELS for command in ("SUBSCRIBE", "PSUBSCRIBE")),
    ]
    for name, rights in RIGHTS.items():
        with login(server_broker, **rights) as drone:
            assert (name, [command for command in foreign if not refused(drone, *command)]) == (name, [])


def test_shared_bindings_and_keys_of_another_type_are_not_written(server_broker: Broker) -> None:
    queue, events, lease = names.queue(OKA), names.events_stream(OKA), names.lease_key(OKA)
    inbox, run = names.inbox_key(OKA), names.run_key(OKA, "0" * 12)
    server_broker.redis.sadd(PIDBOX, "member")
    # No other command that writes is allowed.
    writes = [
        *(("SET", key, "x") for key in (queue, events, inbox, *BINDINGS)),
        *(("LPUSH", key, "x") for key in (events, lease, inbox, run, *BINDINGS)),
        *(("XADD", key, "*", "t", "x") for key in (queue, lease, inbox, run, *BINDINGS)),
        *(("DEL", key) for key in BINDINGS),
    ]
    with login(server_broker) as drone:
        allowed = [write for write in writes if not refused(drone, *write)]
        assert drone.smembers(PIDBOX) == {"member"}
    assert allowed == []


# --- users, and what a broker accepted, after a restart -----------------------------------------


def test_users_outlive_a_restart_and_a_removed_drone_is_cut_off_at_once(broker: Broker, valkey: BrokerServer) -> None:
    broker.ensure_user(OKA, HASH)
    valkey.restart(kill=True)
    with redis.Redis.from_url(broker.drone_url(OKA, PASSWORD)) as drone:
        assert drone.llen(names.queue(OKA)) == 0
        broker.remove_user(OKA)
        with pytest.raises(redis.RedisError):
            drone.llen(names.queue(OKA))


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
            redis.Redis(port=broker_server.port, retry=Retry(NoBackoff(), 0), **login) as stranger,
            pytest.raises(redis.exceptions.AuthenticationError),
        ):
            stranger.set("one", 1)


# --- the bindings that drones share, which the control plane writes and repairs


WORKER = f"oka.{OKA}@host"
PERMANENT = "_kombu.binding_permanent.celery.pidbox"
MEMBER = f"\x06\x16\x06\x16{WORKER}.celery.pidbox"


def test_each_drones_mailbox_is_bound_and_no_other_and_flowers_stay(broker: Broker) -> None:
    broker.redis.sadd(PIDBOX, "stale")
    broker.redis.sadd("_kombu.binding.reply.celery.pidbox", "flower")
    broker.redis.zadd("_kombu.binding_deadlines", {"celeryev": 1})
    assert ensure_bindings(broker, {OKA: WORKER}) == [PIDBOX, PERMANENT]
    assert broker.redis.smembers(PIDBOX) == broker.redis.smembers(PERMANENT) == {MEMBER}
    assert ensure_bindings(broker, {OKA: WORKER}) == []
    ensure_bindings(broker, {})
    assert broker.redis.exists(PIDBOX, PERMANENT) == 0
    assert broker.redis.smembers("_kombu.binding.reply.celery.pidbox") == {"flower"}
    assert broker.redis.zcard("_kombu.binding_deadlines") == 1


def test_a_binding_of_a_wrong_type_is_repaired(broker: Broker) -> None:
    others = ("reply.celery.pidbox", "_permanent.reply.celery.pidbox", "celeryev", "_permanent.celeryev")
    keys = {PIDBOX, PERMANENT, "_kombu.binding_deadlines", f"_kombu.binding.drone.{OKA}"}
    keys |= {f"_kombu.binding{name}" if name[0] == "_" else f"_kombu.binding.{name}" for name in others}
    ensure_bindings(broker, {OKA: WORKER})
    for key in keys:
        broker.redis.set(key, "x")
    assert keys <= set(ensure_bindings(broker, {OKA: WORKER}))
    assert {broker.redis.type(key) for key in keys} <= {"none", "set"}
    assert broker.redis.smembers(PIDBOX) == {MEMBER}
