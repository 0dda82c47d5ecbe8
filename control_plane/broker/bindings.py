"""The bindings that kombu keeps in Redis for all drones together: the control plane writes them, drones only read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from control_plane.broker.broker import Broker
from control_plane.broker.users import CONTROL_EXCHANGE, SHARED_EXCHANGES, binding_keys
from shared import names

_DEADLINES = "_kombu.binding_deadlines"
_SEPARATOR = "\x06\x16"
"""Between the parts of a member: routing key, pattern, queue."""


def ensure_bindings(broker: Broker, workers: Mapping[str, str]) -> list[str]:
    """Bind the mailbox of each drone for remote control, and delete bindings that have a wrong type.

    `workers`: drone id to Celery's name of its worker.

    Returns the keys that were corrected. With another type in its place, the control plane cannot bind a queue. Raises
    Unreachable.
    """
    sets = [key for exchange in (*SHARED_EXCHANGES, *map(names.queue, workers)) for key in binding_keys(exchange)]
    mailboxes = {names.mailbox(worker) for worker in workers.values()}
    members = {_SEPARATOR.join(("", "", mailbox)) for mailbox in mailboxes}
    redis: Any = broker.redis
    with broker.reaching():
        corrected = _delete_wrong_types(redis, dict.fromkeys(sets, "set") | {_DEADLINES: "zset"})
        for key in binding_keys(CONTROL_EXCHANGE):
            if redis.smembers(key) != members:
                corrected.append(key)
                _replace(redis, key, members)
    return list(dict.fromkeys(corrected))


def _delete_wrong_types(redis: Any, expected: Mapping[str, str]) -> list[str]:
    with redis.pipeline(transaction=False) as pipe:
        for key in expected:
            pipe.type(key)
        found = dict(zip(expected, pipe.execute(), strict=True))
    wrong = [key for key, kind in found.items() if kind not in {"none", expected[key]}]
    if wrong:
        redis.delete(*wrong)
    return wrong


def _replace(redis: Any, key: str, members: set[str]) -> None:
    with redis.pipeline() as pipe:
        pipe.delete(key)
        if members:
            pipe.sadd(key, *members)
        pipe.execute()
