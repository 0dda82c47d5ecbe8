"""Time as a parameter: code that reads the time or waits is given a clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Three measures of time, and a way to wait."""

    def now(self) -> datetime:
        """The aware UTC wall clock."""
        ...

    def boottime(self) -> float:
        """Seconds since boot, including sleep of the machine; leases use it."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards, excluding sleep of the machine."""
        ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def boottime(self) -> float:
        # macOS has no CLOCK_BOOTTIME; its CLOCK_MONOTONIC continues during sleep, as required here.
        return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


ASLEEP_SECONDS = 2.0
"""A smaller lead of boot time over monotonic time comes from reading one after the other."""


class Sleeps:
    """Detects that the machine was asleep: boot time continues during sleep, monotonic time does not."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead = self._now_ahead()

    def since_asked(self) -> float:
        """Seconds that the machine slept since the last call; 0 if it did not."""
        before, self._ahead = self._ahead, self._now_ahead()
        return slept if (slept := self._ahead - before) > ASLEEP_SECONDS else 0.0

    def _now_ahead(self) -> float:
        return self._clock.boottime() - self._clock.monotonic()
