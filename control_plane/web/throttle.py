"""How often one address may use what is open without a token."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from fastapi import Request
from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from control_plane.web.problems import Throttled

LIMITS = {
    "log-in": parse("20/minute"),
    "answer link": parse("30/minute"),
    "registration": parse("120/minute"),
    # One address of a code host sends the events of all repositories of an organization.
    "hook": parse("600/minute"),
}


class Throttle:
    """Counts in this process's memory, to spare the database. The secrets need no protection: they have 256 bits."""

    def __init__(self) -> None:
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    def count(self, what: str, address: str) -> None:
        """Count one attempt of `what`. Raises Throttled, with the seconds until the next one is accepted."""
        limit = LIMITS[what]
        if not self._limiter.hit(limit, what, address):
            resets_at, _left = self._limiter.get_window_stats(limit, what, address)
            wait_s = max(1, round(resets_at - time.time()))
            raise Throttled(f"too many {what} attempts from {address}", retry_after_s=wait_s)


def throttled(what: str) -> Callable[[Request], Awaitable[None]]:
    """A dependency that counts the request's client."""

    async def count(request: Request) -> None:
        throttle: Throttle = request.app.state.throttle
        throttle.count(what, request.client.host if request.client else "unknown")

    return count
