"""A drone's user has the commands that a drone needs, for the keys that they are for; on Valkey and on Redis 7.0."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import pytest
import redis

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
    WAKE,
)
DENIED = re.compile("permission|not allowed|ACL failure|user executing the script can't")
"""How the servers say that a script may not do something."""
BUSY = "for i = 1, 1e9 do end"


@pytest.fixture
def server_broker(broker_server: BrokerServer) -> Iterator[Broker]:
    """A control plane's connection to each kind of server."""
    made = Broker(broker_server.url)
    yield made
    made.close()


@contextmanager
def login(broker: Broker, *, needs_scripts: bool = False, may_write: bool = True) -> Iterator[redis.Redis]:
    broker.ensure_user(OKA, HASH, needs_scripts=needs_scripts, may_write=may_write)
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


@pytest.mark.parametrize(("may_write", "allowed"), [(True, ALLOWED), (False, WITHOUT_WRITING)])
def test_every_command_outside_the_list_is_refused(server_broker: Broker, may_write: bool, allowed: set[str]) -> None:
    others = {name: arity for name, arity in commands(server_broker) if name not in allowed}
    with login(server_broker, may_write=may_write) as drone:
        granted = [
            name
            for name, arity in others.items()
            if not refused(drone, *(words := name.split("|")), *[names.lease_key(OKA)] * (abs(arity) - len(words)))
        ]
    assert len(others) > 300
    assert granted == []


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


@pytest.mark.parametrize("may_write", [True, False])
def test_a_drone_looks_into_the_mailboxes_of_its_own_worker_alone(server_broker: Broker, may_write: bool) -> None:
    named = [names.worker(OKA, "host", name) for name in ("", "oka", "a.b_c-", f"x.{MILA}")]
    foreign = [names.worker(MILA, "host", name) for name in ("", "mila", OKA)]
    with login(server_broker, may_write=may_write) as drone:
        denied = [each for each in named if refused(drone, "LLEN", f"{each}.celery.pidbox")]
        allowed = [each for each in foreign if not refused(drone, "LLEN", f"{each}.celery.pidbox")]
        written = [each for each in named if not refused(drone, "LPUSH", f"{each}.celery.pidbox", "x")]
    assert (denied, allowed, written) == ([], [], [])


def test_a_drone_beyond_its_quota_runs_no_scripts_whatever_its_version(server_broker: Broker) -> None:
    with login(server_broker, needs_scripts=True, may_write=False) as drone:
        assert refused(drone, "EVAL", "return 1", "0")


@pytest.mark.parametrize(
    "rights", [{}, {"may_write": False}, {"needs_scripts": True}], ids=["own", "quota", "previous"]
)
@pytest.mark.parametrize("channel", FOREIGN_CHANNELS)
def test_channels_of_others_are_not_received(server_broker: Broker, channel: str, rights: dict[str, bool]) -> None:
    with login(server_broker, **rights) as drone:
        assert refused(drone, "PSUBSCRIBE", channel)
        assert refused(drone, "SUBSCRIBE", channel)


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


FOREIGN_QUEUE, FOREIGN_LEASE = names.queue(MILA), names.lease_key(MILA)
LUA_TRIES = {
    "a foreign key": (f"return redis.call('GET', '{FOREIGN_LEASE}')", ()),
    "a foreign key by pcall": (f"return redis.pcall('GET', '{FOREIGN_LEASE}')", ()),
    "a foreign key in KEYS": ("return redis.call('SET', KEYS[1], 'x')", (FOREIGN_LEASE,)),
    "a foreign key built inside": (
        f"return redis.call('SET', string.gsub(KEYS[1], '{OKA}', '{MILA}'), 'x')",
        (names.lease_key(OKA),),
    ),
    "another protocol": (f"redis.setresp(3) return redis.call('LRANGE', '{FOREIGN_QUEUE}', 0, -1)", ()),
    "a foreign channel": (f"return redis.call('PUBLISH', '{names.control_channel(MILA)}', 'x')", ()),
    "a broadcast": ("return redis.call('PUBLISH', '/0.celery.pidbox', 'x')", ()),
    "another database": ("return redis.call('SELECT', 1)", ()),
    "names of keys": ("return redis.call('KEYS', '*')", ()),
    "its own rights": (f"return redis.call('ACL', 'SETUSER', '{OKA}', 'allkeys')", ()),
    "a function": ("return redis.call('FUNCTION', 'LIST')", ()),
}
"""Scripts, each with its keys."""


@pytest.mark.parametrize("what", LUA_TRIES)
def test_a_script_has_no_more_rights_than_the_drone_that_runs_it(server_broker: Broker, what: str) -> None:
    script, keys = LUA_TRIES[what]
    server_broker.redis.set(FOREIGN_LEASE, "mine")
    server_broker.redis.lpush(FOREIGN_QUEUE, "mine")
    with login(server_broker, needs_scripts=True) as drone, pytest.raises(redis.ResponseError) as error:
        drone.eval(script, len(keys), *keys)
    assert DENIED.search(str(error.value)), error.value
    assert server_broker.redis.get(FOREIGN_LEASE) == "mine"


def test_a_function_that_is_there_has_no_more_rights_than_the_drone_that_calls_it(server_broker: Broker) -> None:
    server_broker.redis.set(FOREIGN_LEASE, "mine")
    reads = f"redis.register_function('f', function() return redis.call('GET', '{FOREIGN_LEASE}') end)"
    server_broker.redis.function_load(f"#!lua name=reads\n{reads}", replace=True)
    with login(server_broker, needs_scripts=True) as drone, pytest.raises(redis.ResponseError) as error:
        drone.fcall("f", 0)
    assert DENIED.search(str(error.value)), error.value
