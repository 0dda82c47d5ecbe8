"""How long a run may act for its order without having heard of the control plane.

Measured by CLOCK_BOOTTIME, which goes on while the machine sleeps: a laptop that was shut for an hour must not push.
"""

from __future__ import annotations

import threading

from shared.clock import Clock

VALID_SECONDS = 45.0
"""From the moment at which the renewal left; 15 s less than the control plane waits before it calls a run lost."""
OFFLINE_GRACE_SECONDS = 600.0
"""How long a run goes on working, without pushing, after its lease ran out."""
WAKING_SECONDS = 30.0
"""For a renewal to arrive after the machine slept, or the drone was stopped: such a run may still be its order's."""


class RunLease:
    """The time until which this drone counts as heard of; renewed by beats, read by runs. Threads may share one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        # Nobody knows of a run before its drone reached Redis to claim it: that counts as the first renewal.
        self._valid_until = clock.boottime() + VALID_SECONDS
        self._silence_noticed: float | None = None

    @property
    def valid_until(self) -> float:
        with self._lock:
            return self._valid_until

    def renewed(self, left_at: float) -> float:
        """A renewal that left at `left_at` (boot time) arrived: return the new end. Never moves it backwards."""
        return self.extend(left_at + VALID_SECONDS)

    def extend(self, valid_until: float) -> float:
        """Take over an end that another process was told of."""
        with self._lock:
            self._valid_until = max(self._valid_until, valid_until)
            return self._valid_until

    def valid(self) -> bool:
        """Whether effects outside the run's own directory are allowed."""
        return self._clock.boottime() < self.valid_until

    def abandoned(self) -> bool:
        """Whether the control plane was silent for so long that the run should stop.

        To be asked often. Who was awake learns it when the grace is over; who slept through that waits for word first.
        """
        silent_at = self.valid_until + OFFLINE_GRACE_SECONDS - WAKING_SECONDS
        with self._lock:
            if self._clock.boottime() < silent_at:
                self._silence_noticed = None
                return False
            now = self._clock.monotonic()
            self._silence_noticed = now if self._silence_noticed is None else self._silence_noticed
            return now - self._silence_noticed >= WAKING_SECONDS
