"""How long a run may act for its order without contact to the control plane.

Measured by CLOCK_BOOTTIME, which keeps running while the machine sleeps: a laptop closed for an hour must not push.
"""

from __future__ import annotations

import threading

from shared.clock import Clock

VALID_SECONDS = 45.0
"""From the moment at which the renewal was sent; 15 s less than the control plane waits before it calls a run lost."""
OFFLINE_GRACE_SECONDS = 600.0
"""How long a run continues to work, without pushing, after its lease expired."""
WAKING_SECONDS = 30.0
"""Time for a renewal to arrive after the machine slept, or the drone was stopped: the run may still hold its order."""


class RunLease:
    """The time until which this drone counts as connected; renewed by beats, read by runs. Threads may share it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        # A run is unknown until its drone reaches Redis to claim it: that counts as the first renewal.
        self._valid_until = clock.boottime() + VALID_SECONDS
        self._silence_noticed: float | None = None

    @property
    def valid_until(self) -> float:
        with self._lock:
            return self._valid_until

    def renewed(self, left_at: float) -> float:
        """Apply a renewal sent at `left_at` (boot time), and return the new end, which never moves backwards."""
        return self.extend(left_at + VALID_SECONDS)

    def extend(self, valid_until: float) -> float:
        """Apply an end that another process received."""
        with self._lock:
            self._valid_until = max(self._valid_until, valid_until)
            return self._valid_until

    def valid(self) -> bool:
        """Whether effects outside the run's own directory are allowed."""
        return self._clock.boottime() < self.valid_until

    def abandoned(self) -> bool:
        """Whether the control plane was silent for so long that the run should stop.

        Call this often. If the machine was awake, this is true when the grace period is over; if it slept through that,
        the run first waits for a renewal.
        """
        silent_at = self.valid_until + OFFLINE_GRACE_SECONDS - WAKING_SECONDS
        with self._lock:
            if self._clock.boottime() < silent_at:
                self._silence_noticed = None
                return False
            now = self._clock.monotonic()
            self._silence_noticed = now if self._silence_noticed is None else self._silence_noticed
            return now - self._silence_noticed >= WAKING_SECONDS
