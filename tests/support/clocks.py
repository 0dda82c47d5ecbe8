"""Clocks that a test sets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from shared.clock import SystemClock


class HandClock:
    """A clock that stands still until a test advances it; `sleep` advances it and returns immediately."""

    def __init__(self, at: datetime = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)) -> None:
        self.at = at
        self.passed = 0.0
        self.asleep = 0.0

    def now(self) -> datetime:
        return self.at + timedelta(seconds=self.boottime())

    def boottime(self) -> float:
        return self.passed + self.asleep

    def monotonic(self) -> float:
        return self.passed

    def sleep(self, seconds: float) -> None:
        self.passed += seconds

    def suspend(self, seconds: float) -> None:
        """Simulate suspend: the monotonic time does not advance."""
        self.asleep += seconds


class SleepyClock(SystemClock):
    """The machine's clocks, as after simulated suspends (`asleep`) and a change of the wall clock (`set_by`)."""

    def __init__(self) -> None:
        self.asleep = 0.0
        self.set_by = timedelta()

    def now(self) -> datetime:
        return super().now() + self.set_by + timedelta(seconds=self.asleep)

    def boottime(self) -> float:
        return super().boottime() + self.asleep
