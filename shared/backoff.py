"""Delay before the next attempt: exponential, jittered, and never shorter than the server requested."""

from __future__ import annotations

import random

MAX_DELAY = 120.0


def delay(attempt: int, *, base: float = 2.0, retry_after: float | None = None, jitter: float = 0.25) -> float:
    """Seconds to wait after failed attempt number `attempt` (1-based): base·2^(attempt-1), spread by ±`jitter`.

    A server's `Retry-After` is a minimum; the result, including this minimum, is capped at two minutes.
    """
    wanted: float = base * 2 ** (attempt - 1)
    spread: float = wanted * (1 + random.uniform(-jitter, jitter))  # noqa: S311 - not a secret
    return min(max(spread, retry_after or 0.0), MAX_DELAY)
