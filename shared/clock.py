"""Time as a parameter: whoever needs to know the hour or to wait is handed a clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What time it is, by three measures, and how to wait."""

    def now(self) -> datetime:
        """The aware UTC wall clock."""
        ...

    def boottime(self) -> float:
        """Seconds since boot, sleep of the machine included: what leases are measured by."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards, sleep of the machine not included."""
        ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def boottime(self) -> float:
        # macOS has no CLOCK_BOOTTIME; its CLOCK_MONOTONIC goes on through sleep, which is what is wanted.
        return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
