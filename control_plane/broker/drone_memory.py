"""How much of the broker's memory each drone's keys hold, and which of these keys the fleet can do without.

A drone writes to its own keys only, so that a key's name tells whose it is. The exception is the queues for answers to
Celery's remote control, which every drone may write to.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from control_plane.broker.broker import Broker
from shared import names

ANSWERS = "answers"
"""Stands for a drone's id with the answers to remote control, which belong to no drone."""
_OWNER = re.compile(r"(?:fleet:|drone\.|_kombu\.binding(?:_permanent)?\.drone\.)?([0-9a-f]{12})(?![0-9a-f])")
_OWNER_AT_END = re.compile(r"unacked(?:_index|_mutex)?\.([0-9a-f]{12})")
_ANSWERS = re.compile(r".{36}\.reply\.celery\.pidbox", re.DOTALL)
_SMALL = 1024
"""Bytes in memory, above all that the fleet writes into the key of a run, a lease or a boot."""
_AT_ONCE = 1000


@dataclass
class Holding:
    """The keys of one drone, with the bytes that each takes in memory."""

    keys: dict[str, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(self.keys.values())


def measure(broker: Broker) -> dict[str, Holding]:
    """What each drone's keys hold, by the drone's id. Reads the name and the size of every key. Raises Unreachable."""
    found: dict[str, Holding] = defaultdict(Holding)
    redis: Any = broker.redis
    with broker.reaching():
        for keys in _batches(redis.scan_iter(count=_AT_ONCE)):
            with redis.pipeline(transaction=False) as pipe:
                for key in keys:
                    # Every part of a value is counted: small ones at the beginning must not hide large ones.
                    pipe.memory_usage(key, samples=0)
                for key, size in zip(keys, pipe.execute(), strict=True):
                    if (owner := _owner(key)) is not None:
                        found[owner].keys[key] = size or 0
    return found


def unneeded(drone_id: str, holding: Holding, run_ids: set[str]) -> list[str]:
    """The keys that the fleet can do without: all but the stream, the inbox, the lease, the boot and `run_ids`.

    Of these, all but the stream and the inbox are needed only while they are small, as the fleet writes them. The queue
    is unneeded: its orders are in the database, and are published again.
    """
    kept = {names.events_stream(drone_id), names.inbox_key(drone_id)}
    small = {names.lease_key(drone_id), names.boot_key(drone_id), *(names.run_key(drone_id, run) for run in run_ids)}
    return [key for key, size in holding.keys.items() if key not in kept and (key not in small or size > _SMALL)]


def left_behind(drone_id: str, holding: Holding) -> list[str]:
    """The keys of a removed drone that may go: all but those of runs while they are small, which keep a run revoked."""
    runs = names.run_key(drone_id, "")
    return [key for key, size in holding.keys.items() if not key.startswith(runs) or size > _SMALL]


def drop(broker: Broker, keys: Iterable[str]) -> None:
    """Delete the keys, without making other clients wait for it. Raises Unreachable."""
    with broker.reaching():
        for batch in _batches(keys):
            broker.redis.unlink(*batch)


def _owner(key: str) -> str | None:
    if _ANSWERS.fullmatch(key):
        return ANSWERS
    found = _OWNER.match(key) or _OWNER_AT_END.match(key)
    return found[1] if found else None


def _batches(keys: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    for key in keys:
        batch.append(key)
        if len(batch) == _AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch
