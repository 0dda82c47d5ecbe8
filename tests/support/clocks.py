"""A clock that a test turns by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class HandClock:
    """Stands still until it is told to go on; sleeping on it goes on at once."""

    def __init__(self, at: datetime = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)) -> None:
        self.at = at
        self.passed = 0.0

    def now(self) -> datetime:
        return self.at + timedelta(seconds=self.passed)

    def boottime(self) -> float:
        return self.passed

    def monotonic(self) -> float:
        return self.passed

    def sleep(self, seconds: float) -> None:
        self.passed += seconds
