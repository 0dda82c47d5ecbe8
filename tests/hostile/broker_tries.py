"""What a hostile drone tries with its login to the broker. `{…}` stands for what the tries are aimed at."""

from __future__ import annotations

from collections.abc import Iterator

import redis

from shared import names
from tests.hostile.hostile_drone import GotThrough, HostileDrone, Try

COMMANDS = {
    "another drone's queue": """
        LRANGE drone.{oka} 0 -1
        LINDEX drone.{oka} 0
        LLEN drone.{oka}
        RPOP drone.{oka}
        BRPOP drone.{oka} 0.1
        BLPOP drone.{oka} 0.1
        LPOP drone.{oka}
        LMPOP 1 drone.{oka} LEFT
        LMOVE drone.{oka} drone.{me} LEFT LEFT
        RPOPLPUSH drone.{oka} drone.{me}
        BRPOPLPUSH drone.{oka} drone.{me} 0.1
        LPUSH drone.{oka} {{"body":"forged","headers":{{"task":"fleet.run"}}}}
        RPUSH drone.{oka} gASVJAAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAlpZCA+IC90bXCUhZRSlC4=
        LREM drone.{oka} 0 x
        LTRIM drone.{oka} 1 0
        DEL drone.{oka}
        DEL drone.{mila}
        RENAME drone.{oka} drone.{me}
        COPY drone.{oka} drone.{me}
        SORT drone.{oka} BY nosort STORE drone.{me}
    """,
    "another drone's stream": """
        XRANGE fleet:{oka}:events - +
        XREAD STREAMS fleet:{oka}:events 0
        XREADGROUP GROUP collectors collector STREAMS fleet:{oka}:events >
        XADD fleet:{oka}:events * t event e forged
        XADD fleet:{mila}:events * t hello e forged
        XTRIM fleet:{oka}:events MAXLEN 0
        XINFO STREAM fleet:{oka}:events
        MEMORY USAGE fleet:{oka}:events
    """,
    "its own stream, beyond adding to it": """
        XREADGROUP GROUP collectors collector STREAMS fleet:{me}:events >
        XGROUP DESTROY fleet:{me}:events collectors
        XGROUP SETID fleet:{me}:events collectors $
        XACK fleet:{me}:events collectors 0-1
        XSETID fleet:{me}:events 99999999999999-0
    """,
    "runs, leases and messages of another": """
        GET fleet:{oka}:run:{oka_run}
        SET fleet:{oka}:run:{oka_run} claimed:1:hostile
        SET fleet:{mila}:run:{mila_run} revoked:1
        DEL fleet:{oka}:run:{oka_run}
        WATCH fleet:{oka}:run:{oka_run}
        SET fleet:{oka}:lease hostile
        DEL fleet:{oka}:lease
        EXPIRE fleet:{oka}:lease 0
        SET fleet:{oka}:boot hostile
        GET fleet:{oka}:boot
        HGETALL fleet:{oka}:inbox
        HSET fleet:{oka}:inbox x forged
        HDEL fleet:{oka}:inbox x
        HSET fleet:{me}:inbox x forged
        DUMP fleet:{oka}:boot
        RESTORE fleet:{oka}:boot 0 x REPLACE
        OBJECT ENCODING fleet:{oka}:inbox
        EXISTS fleet:{oka}:lease
        TYPE fleet:{oka}:inbox
    """,
    "channels": """
        PUBLISH fleet:{oka}:control forged
        PUBLISH fleet:{me}:control forged
        PUBLISH fleet:{oka}:beat forged
        PUBLISH fleet:{oka}:live forged
        PUBLISH fleet:changed {oka_order}
        PUBLISH fleet:wake x
        PUBLISH /0.celery.pidbox {{"method":"shutdown"}}
        SPUBLISH fleet:{oka}:live forged
        SUBSCRIBE fleet:{oka}:control
        SUBSCRIBE fleet:{oka}:live
        SUBSCRIBE fleet:changed
        SUBSCRIBE __keyevent@0__:set
        SSUBSCRIBE fleet:{oka}:live
        PSUBSCRIBE *
        PSUBSCRIBE fleet:*
        PSUBSCRIBE fleet:{me}:*
        PUBSUB CHANNELS
        PUBSUB NUMSUB fleet:{oka}:live
    """,
    "names of others' keys, and other databases": """
        KEYS *
        SCAN 0
        RANDOMKEY
        DBSIZE
        SELECT 1
        SWAPDB 0 1
        MOVE fleet:{me}:lease 1
        FLUSHALL
        FLUSHDB
    """,
    "bindings and queues of Celery": """
        SADD _kombu.binding.celery.pidbox forged
        SREM _kombu.binding.reply.celery.pidbox x
        DEL _kombu.binding.celeryev
        SMEMBERS _kombu.binding.drone.{oka}
        LPUSH celery forged
        BRPOP celery 0.1
        HGETALL unacked
        LPUSH {oka}@host.celery.pidbox forged
        LPUSH oka.{oka}@host.celery.pidbox forged
        LLEN oka.{oka}@host.celery.pidbox
        LPUSH fleet:{oka}:reply.celery.pidbox forged
    """,
    "code on the server": """
        EVAL return(1) 0
        EVALSHA {sha1} 0
        SCRIPT FLUSH
        FUNCTION LOAD #!lua
        FUNCTION FLUSH
        FCALL f 0
        MODULE LOAD /tmp/x.so
    """,
    "the server itself": """
        CONFIG GET *
        CONFIG SET dir /root/.ssh
        CONFIG REWRITE
        DEBUG SLEEP 60
        SAVE
        BGSAVE
        BGREWRITEAOF
        SHUTDOWN NOSAVE
        REPLICAOF 127.0.0.1 1
        FAILOVER
        PSYNC ? -1
        CLUSTER RESET
        MIGRATE 127.0.0.1 1 fleet:{me}:lease 0 10
        MONITOR
        SLOWLOG GET
        LATENCY RESET
        MEMORY DOCTOR
        WAIT 1 10
        COMMAND
    """,
    "other users and connections": """
        ACL LIST
        ACL WHOAMI
        ACL LOG RESET
        ACL SETUSER {me} +@all ~* &*
        ACL DELUSER {oka}
        CLIENT LIST
        CLIENT KILL TYPE normal
        CLIENT PAUSE 60000
        CLIENT NO-EVICT ON
        CLIENT TRACKING ON BCAST
        CLIENT UNBLOCK 1 ERROR
    """,
}
LOGINS = [
    ("control", "control"),
    ("control", ""),
    ("default", ""),
    ("{oka}", "guess"),
    ("{me}", "guess"),
]
PICKLE = b"\x80\x04\x95"
HUGE = 17 * 1024 * 1024


def tries() -> Iterator[Try]:
    """Each command, and what is not a single command."""
    for commands in COMMANDS.values():
        for line in commands.strip().splitlines():
            yield _command(line.strip())
    for user, password in LOGINS:
        yield _login(user, password)
    yield Try("hide a command between MULTI and EXEC", _in_transaction, "acl")
    yield Try("write a text of 17 MB", _huge, "")


def _command(line: str) -> Try:
    def act(drone: HostileDrone) -> str:
        words = [word.format_map(_names(drone)) for word in line.split()]
        try:
            answer = drone.played.redis.execute_command(*words)
        except redis.exceptions.NoPermissionError:
            return "broker: rights of the drone's user"
        except redis.ResponseError as error:
            # DEBUG and MODULE are off for every user; the broker checks that before the rights.
            if "command not allowed" in str(error):
                return "broker: off for every user"
            raise GotThrough(f"{line}: {error}") from error
        raise GotThrough(f"{line}: {answer!r}")

    off = line.split(maxsplit=1)[0] in {"DEBUG", "MODULE"}
    return Try(line.replace("{{", "{").replace("}}", "}")[:60], act, "" if off else "acl")


def _names(drone: HostileDrone) -> dict[str, str]:
    return {**vars(drone.victims), "me": drone.id, "sha1": "0" * 40}


def _login(user: str, password: str) -> Try:
    def act(drone: HostileDrone) -> str:
        name = user.format_map(_names(drone))
        stranger = redis.Redis.from_url(drone.broker_url, username=name, password=password)
        parts = stranger.connection_pool.connection_kwargs
        parts.update(username=name, password=password)
        with stranger:
            try:
                stranger.ping()
            except redis.AuthenticationError:
                return "broker: password"
        raise GotThrough(f"log-in as {name}")

    return Try(f"log in as {user} with the password {password!r}", act, "acl")


def _in_transaction(drone: HostileDrone) -> str:
    with drone.played.redis.pipeline(transaction=True) as pipe:
        pipe.set(names.lease_key(drone.id), "x").get(names.lease_key(drone.victims.oka))
        try:
            pipe.execute()
        except redis.exceptions.NoPermissionError:
            return "broker: rights of the drone's user"
    raise GotThrough("a transaction")


def _huge(drone: HostileDrone) -> str:
    try:
        drone.played.redis.set(names.lease_key(drone.id), "x" * HUGE)
    except redis.RedisError:
        return "broker: proto-max-bulk-len"
    raise GotThrough("17 MB were stored")
