"""A drone's user has the commands that a drone needs, for the keys that they are for; on Valkey and on Redis 7.0."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import pytest
import redis

from control_plane.broker.broker import Broker
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
BUSY = "for i = 1, 1e9 do end"


@pytest.fixture
def server_broker(broker_server: BrokerServer) -> Iterator[Broker]:
    """A control plane's connection to each kind of server."""
    made = Broker(broker_server.url)
    yield made
    made.close()


@contextmanager
def login(broker: Broker, *, needs_scripts: bool = False) -> Iterator[redis.Redis]:
    broker.ensure_user(OKA, HASH, needs_scripts=needs_scripts)
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
    others = {name: arity for name, arity in commands(server_broker) if name not in ALLOWED}
    with login(server_broker) as drone:
        granted = [
            name
            for name, arity in others.items()
            if not refused(drone, *(words := name.split("|")), *[names.lease_key(OKA)] * (abs(arity) - len(words)))
        ]
    assert len(others) > 300
    assert granted == []


def test_the_list_names_nothing_that_this_server_lacks(server_broker: Broker) -> None:
    known = dict(commands(server_broker))
    optional = set() if server_broker.redis_version() >= (7, 2) else {"client|setinfo"}
    assert ALLOWED - set(known) == optional


@pytest.mark.parametrize("key", BINDINGS)
def test_shared_bindings_are_not_written(server_broker: Broker, key: str) -> None:
    writes = [
        ("DEL", key),
        ("UNLINK", key),
        ("SET", key, "x"),
        ("SADD", key, "x"),
        ("SREM", key, "x"),
        ("ZADD", key, "1", "x"),
        ("LPUSH", key, "x"),
        ("EXPIRE", key, "1"),
        ("RENAME", names.lease_key(OKA), key),
    ]
    with login(server_broker) as drone:
        allowed = [write for write in writes if not refused(drone, *write)]
    assert allowed == []


def test_shared_bindings_are_read(server_broker: Broker) -> None:
    server_broker.redis.sadd(PIDBOX, "member")
    with login(server_broker) as drone:
        assert drone.smembers(PIDBOX) == {"member"}


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "command",
    [
        ("EVAL", BUSY, "0"),
        ("EVAL_RO", BUSY, "0"),
        ("EVALSHA", "0" * 40, "0"),
        ("SCRIPT", "LOAD", BUSY),
        ("FUNCTION", "LOAD", f"#!lua name=busy\nredis.register_function('f', function() {BUSY} end)"),
        ("FCALL", "f", "0"),
        ("FCALL_RO", "f", "0"),
    ],
    ids=lambda command: command[0],
)
def test_no_script_can_stop_the_broker(server_broker: Broker, command: tuple[str, ...]) -> None:
    with login(server_broker) as drone:
        assert refused(drone, *command)
    server_broker.ping()


@pytest.mark.parametrize(
    "command",
    [
        ("TRACKING", "ON", "BCAST"),
        ("CACHING", "YES"),
        ("TRACKINGINFO",),
        ("LIST",),
        ("KILL", "ID", "1"),
        ("PAUSE", "1"),
    ],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize("needs_scripts", [False, True])
def test_names_of_others_keys_and_connections_are_not_told(
    server_broker: Broker, command: tuple[str, ...], needs_scripts: bool
) -> None:
    with login(server_broker, needs_scripts=needs_scripts) as drone:
        assert refused(drone, "CLIENT", *command)


def test_a_drone_cannot_put_another_type_where_the_control_plane_reads(server_broker: Broker) -> None:
    queue, events, lease = names.queue(OKA), names.events_stream(OKA), names.lease_key(OKA)
    inbox, run = names.inbox_key(OKA), names.run_key(OKA, "0" * 12)
    writes = [(("SET", key, "x")) for key in (queue, events, inbox)]
    writes += [("LPUSH", key, "x") for key in (events, lease, inbox, run)]
    writes += [("XADD", key, "*", "t", "x") for key in (queue, lease, inbox, run)]
    with login(server_broker) as drone:
        allowed = [write for write in writes if not refused(drone, *write)]
    assert allowed == []


def test_a_drone_of_the_previous_version_keeps_its_scripts(server_broker: Broker) -> None:
    script = "return redis.call('SADD', KEYS[1], ARGV[1])"
    with login(server_broker, needs_scripts=True) as drone:
        assert drone.register_script(script)(keys=[PIDBOX], args=["x"]) == 1
    with login(server_broker) as drone:
        assert refused(drone, "EVAL", script, "1", PIDBOX, "x")
