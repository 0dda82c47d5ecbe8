"""The drones' Redis users and their rights: a short list of commands, each for the drone's own keys and channels only.

A command that writes is allowed for keys of one type alone, so that no drone can put a value of another type where the
control plane reads. Shared keys are read, never written, and there are no scripts: one that does not end would stop
the broker for all. See docs/decisions/0012-broker-rights-of-drones.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import redis

from shared import names

SHARED_EXCHANGES = ("celery.pidbox", "reply.celery.pidbox", "celeryev")
"""Celery's exchanges for remote control, for the answers to it, and for events."""
CONTROL_EXCHANGE = SHARED_EXCHANGES[0]

_UP_TO_PRIORITIES = "\x06\x16*"
"""kombu keeps a queue's other priorities in lists named after it, with these two bytes between."""
_REPLY_QUEUES = f"{'-'.join('?' * length for length in (8, 4, 4, 4, 12))}.reply.celery.pidbox"
"""Queues for answers to remote control begin with a UUID; a shorter pattern would match the bindings, too."""

# fmt: off
_COMMANDS = (
    "-@all",
    "+ping", "+info",
    "+multi", "+exec", "+discard", "+unwatch",
    "+subscribe", "+unsubscribe", "+psubscribe", "+punsubscribe",
)
# fmt: on


@dataclass(frozen=True)
class DroneUser:
    """What the drone's user is made from."""

    password_hashes: tuple[str, ...]
    """SHA-256 of each valid password in hexadecimal: two while the drone's keys are being replaced."""
    may_write: bool = True
    """False while its keys hold more of the broker's memory than its quota: it reads, beats, and keeps its lease."""


def rules(drone_id: str, user: DroneUser, *, knows_setinfo: bool) -> list[str]:
    """The arguments of `ACL SETUSER <drone>`: they begin with a reset, so that no older right remains.

    `CLIENT SETINFO` came with Redis 7.2; naming it to an older server is an error, and not granting it on a newer one
    fills the ACL log.
    """
    setinfo = ["+client|setinfo"] if knows_setinfo else []
    who = ["reset", "on", *(f"#{each}" for each in user.password_hashes)]
    if not user.may_write:
        channels = [f"&{names.control_channel(drone_id)}"]
        return [*who, *channels, *_COMMANDS, *setinfo, *_reading_selectors(drone_id)]
    channels = ["&/0.celery.pidbox", f"&{names.control_channel(drone_id)}"]
    return [*who, *channels, *_COMMANDS, *setinfo, *_selectors(drone_id)]


def _selectors(drone_id: str) -> list[str]:
    queue = names.queue(drone_id)
    bindings = " ".join(f"%R~{key}" for exchange in SHARED_EXCHANGES for key in binding_keys(exchange))
    published = (names.live_channel(drone_id), names.beat_channel(drone_id), "/0.celeryev*")
    return [
        f"(+get +set +watch ~{names.run_key(drone_id, '*')} ~{names.boot_key(drone_id)})",
        f"(+get +set +del ~{names.lease_key(drone_id)})",
        f"(+xadd +memory|usage ~{names.events_stream(drone_id)})",
        f"(+hgetall %R~{names.inbox_key(drone_id)})",
        f"(+llen +brpop +rpop +lpush ~{queue} ~{queue}{_UP_TO_PRIORITIES})",
        f"(+llen {_mailboxes(drone_id)})",
        f"(+smembers {bindings})",
        f"(+lpush %W~{_REPLY_QUEUES})",
        f"(+publish {' '.join(f'&{channel}' for channel in published)})",
    ]


def _reading_selectors(drone_id: str) -> list[str]:
    """What a drone beyond its quota still does: nothing of it takes more memory than two small keys."""
    queue = names.queue(drone_id)
    bindings = " ".join(f"%R~{key}" for exchange in SHARED_EXCHANGES for key in binding_keys(exchange))
    return [
        f"(+get +watch %R~{names.run_key(drone_id, '*')})",
        f"(+get +set +del ~{names.lease_key(drone_id)} ~{names.boot_key(drone_id)})",
        f"(+memory|usage %R~{names.events_stream(drone_id)})",
        f"(+hgetall %R~{names.inbox_key(drone_id)})",
        f"(+llen +brpop +rpop ~{queue} ~{queue}{_UP_TO_PRIORITIES})",
        f"(+llen {_mailboxes(drone_id)})",
        f"(+smembers {bindings})",
        f"(+publish &{names.live_channel(drone_id)} &{names.beat_channel(drone_id)} &/0.celeryev*)",
    ]


def _mailboxes(drone_id: str) -> str:
    """Where a drone's worker looks for remote control, under every name of the drone."""
    return f"%R~{names.mailbox(f'*.{drone_id}@*')}*"


def binding_keys(exchange: str) -> tuple[str, str]:
    """The two sets in which kombu keeps the queues of an exchange: all, and those that never expire."""
    return f"_kombu.binding.{exchange}", f"_kombu.binding_permanent.{exchange}"


class ServerUsers:
    """Reads and writes the drones' users on one server. The errors are redis-py's.

    Users do not replicate: a replica gets them from here, too.
    """

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client
        self._granted: dict[str, DroneUser] = {}
        """What this process wrote to the server below."""
        self._run_id = ""
        """Of the server's process."""

    def drones(self) -> set[str]:
        """The drones that have a user now."""
        return {user for user in cast("list[str]", self._redis.acl_users()) if _is_drone(user)}

    def give(self, drone_id: str, user: DroneUser) -> None:
        """Create or renew a drone's user."""
        self._set(drone_id, user, self._redis.info("server"))
        self._save()

    def correct(self, wanted: Mapping[str, DroneUser], there: set[str]) -> list[str]:
        """Create missing users, renew changed ones, and delete others; `there`: the drones that have one.

        Returns the ids that were missing or surplus. The first call for a server's process writes every user, as that
        process may have been started with users from before a change, and newer rules must take effect.
        """
        server = self._redis.info("server")
        if server["run_id"] != self._run_id:
            self._granted = {}
        missing = [drone for drone, user in wanted.items() if drone not in there or self._granted.get(drone) != user]
        surplus = sorted(there - set(wanted))
        for drone_id in missing:
            self._set(drone_id, wanted[drone_id], server)
        if surplus:
            self._redis.acl_deluser(*surplus)
        if missing or surplus:
            self._save()
        self._granted, self._run_id = dict(wanted), server["run_id"]
        return [drone for drone in missing if drone not in there] + surplus

    def delete(self, drone_id: str) -> None:
        """Delete a drone's user, which closes its connections."""
        self._redis.acl_deluser(drone_id)
        self._save()
        self._granted.pop(drone_id, None)

    def close(self) -> None:
        self._redis.close()

    def _set(self, drone_id: str, user: DroneUser, server: Mapping[str, Any]) -> None:
        words = rules(drone_id, user, knows_setinfo=redis_version(server) >= (7, 2))
        cast("Any", self._redis).execute_command("ACL SETUSER", drone_id, *words)
        self._granted[drone_id] = user

    def _save(self) -> None:
        try:
            self._redis.acl_save()
        except redis.ResponseError as error:
            # A server without an ACL file loses its users when it restarts; the supervisor corrects them.
            if "ACL file" not in str(error):
                raise


def redis_version(server: Mapping[str, Any]) -> tuple[int, int]:
    """Major and minor Redis version whose commands a server supports, from its `INFO server`."""
    major, minor = str(server["redis_version"]).split(".")[:2]
    return int(major), int(minor)


def _is_drone(user: str) -> bool:
    return len(user) == names.ID_LENGTH and all(letter in "0123456789abcdef" for letter in user)
