"""The rights of a drone's Redis user: a short list of commands, each for the drone's own keys and channels only.

A command that writes is allowed for keys of one type alone, so that no drone can put a value of another type where the
control plane reads. Shared keys are read, never written, and there are no scripts: one that does not end would stop
the broker for all. See docs/decisions/0012-broker-rights-of-drones.md.
"""

from __future__ import annotations

from dataclasses import dataclass

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
