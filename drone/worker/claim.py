"""Claiming a run: a compare-and-swap on its key in Redis, so that only one of all copies of a message starts the run.

The message in the queue decides nothing. It may come twice, or late, or after Redis was emptied; only the key says
whether this run is still to be started, and only once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from redis import Redis

from shared import names

# The second branch makes the swap repeatable: if the connection broke after the server had executed it, a retry finds
# our own claim. No other thread of this boot can hold it, because only one of them creates a run's directory.
SCRIPT = """
local found = redis.call('GET', KEYS[1])
if found == ARGV[1] then
    redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
    return {1, found}
end
if found == ARGV[2] then
    return {1, found}
end
return {0, found or ''}
"""


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
        self._drone_id = drone_id
        self._boot_id = boot_id
        # EVALSHA, with SCRIPT LOAD if the server does not know the script: both are in the drone's ACL.
        self._swap: Any = redis.register_script(SCRIPT)

    def claim(self, run_id: str, generation: int) -> Claim:
        """Swap `dispatched:<generation>` for our own claim. An absent key is never a claim; repeating is safe.

        Raises redis.exceptions.RedisError if the server does not answer: it is then unknown whether the run is ours,
        and the caller must retry before it does anything else with the run.
        """
        granted, found = self._swap(
            keys=[names.run_key(self._drone_id, run_id)],
            args=[names.dispatched(generation), names.claimed(generation, self._boot_id)],
        )
        return Claim(bool(granted), found.decode() if isinstance(found, bytes) else str(found))
