"""What a hostile drone tries with its login to the broker. `{…}` stands for what the tries are aimed at.

One command for each kind of key and of effect: `integration/broker/test_broker_rights.py` has all commands.
"""

from __future__ import annotations

from collections.abc import Iterator

import redis

from shared import names
from tests.hostile.hostile_drone import GotThrough, HostileDrone, Try

COMMANDS = """
    LRANGE drone.{oka} 0 -1
    RPOP drone.{oka}
    LMOVE drone.{oka} drone.{me} LEFT LEFT
    LPUSH drone.{oka} {{"body":"forged","headers":{{"task":"fleet.run"}}}}
    DEL drone.{mila}
    SORT drone.{oka} BY nosort STORE drone.{me}
    XRANGE fleet:{oka}:events - +
    XREADGROUP GROUP collectors collector STREAMS fleet:{oka}:events >
    XADD fleet:{oka}:events * t event e forged
    XADD fleet:{mila}:events * t hello e forged
    XREADGROUP GROUP collectors collector STREAMS fleet:{me}:events >
    XGROUP DESTROY fleet:{me}:events collectors
    XSETID fleet:{me}:events 99999999999999-0
    GET fleet:{oka}:run:{oka_run}
    SET fleet:{oka}:run:{oka_run} claimed:1:hostile
    SET fleet:{mila}:run:{mila_run} revoked:1
    SET fleet:{oka}:lease hostile
    DEL fleet:{oka}:lease
    HGETALL fleet:{oka}:inbox
    HSET fleet:{me}:inbox x forged
    RESTORE fleet:{oka}:boot 0 x REPLACE
    PUBLISH fleet:{oka}:control forged
    PUBLISH fleet:{oka}:beat forged
    PUBLISH fleet:changed {oka_order}
    PUBLISH /0.celery.pidbox {{"method":"shutdown"}}
    SUBSCRIBE fleet:{oka}:live
    PSUBSCRIBE *
    KEYS *
    SCAN 0
    FLUSHALL
    SADD _kombu.binding.celery.pidbox forged
    LPUSH {oka}@host.celery.pidbox forged
    LPUSH fleet:{oka}:reply.celery.pidbox forged
    EVAL return(1) 0
    MODULE LOAD /tmp/x.so
    CONFIG SET dir /root/.ssh
    DEBUG SLEEP 60
    SHUTDOWN NOSAVE
    ACL SETUSER {me} +@all ~* &*
    CLIENT KILL TYPE normal
"""
LOGINS = (("control", "control"), ("control", ""), ("default", ""), ("{oka}", "guess"))
OFF = ("DEBUG", "MODULE")
"""Off for every user: the broker checks that before the rights, and does not log it."""
HUGE = 17 * 1024 * 1024


def tries() -> Iterator[Try]:
    """Each command, and what is not a single command."""
    for line in COMMANDS.strip().splitlines():
        yield _command(line.strip())
    for user, password in LOGINS:
        yield _login(user, password)
    yield Try("hide a command between MULTI and EXEC", _in_transaction, "acl")
    yield Try("write a text of 17 MB", _huge)


def _command(line: str) -> Try:
    is_off = line.startswith(OFF)

    def act(drone: HostileDrone) -> None:
        words = [word.format_map(_names(drone)) for word in line.split()]
        try:
            answer = drone.played.redis.execute_command(*words)
        except redis.exceptions.NoPermissionError:
            return
        except redis.ResponseError as error:
            if is_off and "command not allowed" in str(error):
                return
            raise GotThrough(str(error)) from error
        raise GotThrough(repr(answer))

    return Try(line, act, "" if is_off else "acl")


def _names(drone: HostileDrone) -> dict[str, str]:
    return {**vars(drone.victims), "me": drone.id}


def _login(user: str, password: str) -> Try:
    def act(drone: HostileDrone) -> None:
        stranger = redis.Redis.from_url(drone.broker_url)
        login = {"username": user.format_map(_names(drone)), "password": password}
        stranger.connection_pool.connection_kwargs.update(login)
        with stranger:
            try:
                stranger.ping()
            except redis.AuthenticationError:
                return
        raise GotThrough("logged in")

    return Try(f"log in as {user} with the password {password!r}", act, "acl")


def _in_transaction(drone: HostileDrone) -> None:
    with drone.played.redis.pipeline(transaction=True) as pipe:
        pipe.set(names.lease_key(drone.id), "x").get(names.lease_key(drone.victims.oka))
        try:
            pipe.execute()
        except redis.exceptions.NoPermissionError:
            return
    raise GotThrough("a transaction")


def _huge(drone: HostileDrone) -> None:
    try:
        drone.played.redis.set(names.lease_key(drone.id), "x" * HUGE)
    except redis.RedisError:
        return
    raise GotThrough("17 MB were stored")
