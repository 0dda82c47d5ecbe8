"""Claiming a run: a compare-and-swap on its key in Redis, so that only one of all copies of a message starts the run.

The message in the queue decides nothing. It may come twice, or late, or after Redis was emptied; only the key says
whether this run is still to be started, and only once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from redis import Redis

from shared import names


@dataclass(frozen=True)
class Claim:
    """The result of a claim. `found` is the key's value before; empty if there was no key."""

    granted: bool
    found: str

    @property
    def revoked(self) -> bool:
        """The control plane took the run back before it began."""
        return self.found.startswith("revoked:")


class Claims:
    """Claims runs for one boot of one drone."""

    def __init__(self, redis: Redis, drone_id: str, boot_id: str) -> None:
        self._redis = redis
        self._drone_id = drone_id
        self._boot_id = boot_id

    def claim(self, run_id: str, generation: int) -> Claim:
        """Swap `dispatched:<generation>` for our own claim. An absent key is never a claim; repeating is safe.

        Raises redis.exceptions.RedisError if the server does not answer: it is then unknown whether the run is ours,
        and the caller must retry before it does anything else with the run.
        """
        key = names.run_key(self._drone_id, run_id)
        offered, ours = names.dispatched(generation), names.claimed(generation, self._boot_id)

        # A transaction, because a drone may run no scripts: one that does not end would stop the broker for all.
        def swap(pipe: Any) -> Claim:
            value = pipe.get(key)
            found = value.decode() if isinstance(value, bytes) else ""
            pipe.multi()
            if found == offered:
                pipe.set(key, ours, keepttl=True)
            # Finding our own claim makes the swap repeatable: the connection may have broken after the server executed
            # it. No other thread of this boot can hold it, because only one of them creates a run's directory.
            return Claim(found in {offered, ours}, found)

        # Repeats the swap if the key has changed since it was read, or the connection broke in between.
        redis: Any = self._redis
        claim: Claim = redis.transaction(swap, key, value_from_callable=True)
        return claim
