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


ASLEEP_SECONDS = 2.0
"""Boot time that is ahead of monotonic time by less than this is a matter of reading one after the other."""


class Sleeps:
    """Notices that the machine was asleep: meanwhile boot time went on, and monotonic time did not."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead = self._now_ahead()

    def since_asked(self) -> float:
        """For how many seconds the machine slept since this was asked last; 0 where it did not."""
        before, self._ahead = self._ahead, self._now_ahead()
        return slept if (slept := self._ahead - before) > ASLEEP_SECONDS else 0.0

    def _now_ahead(self) -> float:
        return self._clock.boottime() - self._clock.monotonic()
