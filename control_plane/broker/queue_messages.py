"""The messages in the drones' queues, as kombu stores them: which runs they are for, and taking some out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from control_plane.broker.broker import Broker
from shared import names


@dataclass(frozen=True)
class QueuedMessage:
    """One message as it is stored."""

    text: str
    run_id: str
    """'' for something else, which only the drone itself can have put there."""


def queue_lengths(broker: Broker, drone_ids: Iterable[str]) -> dict[str, int]:
    """The number of messages in each drone's queue. Raises Unreachable."""
    wanted = list(drone_ids)
    with broker.reaching(), broker.redis.pipeline(transaction=False) as pipe:
        for drone_id in wanted:
            pipe.llen(names.queue(drone_id))
        return dict(zip(wanted, pipe.execute(), strict=True))


def queued_messages(broker: Broker, drone_id: str, begin: int, count: int) -> list[QueuedMessage]:
    """The messages at these places of the drone's queue, the newest being the first. Raises Unreachable."""
    redis: Any = broker.redis
    with broker.reaching():
        return [
            QueuedMessage(text, _run_of(text)) for text in redis.lrange(names.queue(drone_id), begin, begin + count - 1)
        ]


def take_out(broker: Broker, drone_id: str, messages: Iterable[QueuedMessage]) -> int:
    """Delete these messages from the drone's queue; returns how many were still there. Raises Unreachable."""
    with broker.reaching(), broker.redis.pipeline(transaction=False) as pipe:
        for message in messages:
            pipe.lrem(names.queue(drone_id), 1, message.text)
        return sum(pipe.execute())


def _run_of(text: str) -> str:
    """The task's id in the message's headers."""
    try:
        message = json.loads(text)
    except ValueError:
        return ""
    headers = message.get("headers") if isinstance(message, Mapping) else None
    found = headers.get("id") if isinstance(headers, Mapping) else None
    return found if isinstance(found, str) else ""
