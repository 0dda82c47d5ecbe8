"""The supervisor's subscription: wake-up messages, the drones' beats, and its own beat.

Its own beat goes through the same broker and the same subscription as theirs. The silence of a drone means something
only while the own beat keeps coming back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from control_plane.background.timings import Timings
from control_plane.broker.broker import WAKE
from control_plane.core import Core
from shared import names
from shared.subscriptions import CheckedSubscription

_MISSED = 3
"""Own beats that may be missing before the subscription counts as broken."""


class Rouse(Protocol):
    """Wakes the quick loops immediately; with `everything` also those that run seldom."""

    def __call__(self, *, everything: bool) -> None: ...


class HeartbeatMonitor:
    """Listens in one thread; its results may be read from any."""

    def __init__(self, core: Core, holder: str, timings: Timings, rouse: Rouse) -> None:
        self._core = core
        self._id = holder
        self._every = timings.own_beat
        self._wait = min(timings.stop_within, timings.own_beat / 2)
        self._rouse = rouse
        self._pubsub: CheckedSubscription | None = None
        self._closed = False
        self._sent_at = float("-inf")
        self._own_at = float("-inf")
        self._steady_since: float | None = None
        self._heard: dict[str, float] = {}

    def listen(self) -> None:
        """Wait for one message and act on it; send the own beat when it is due. Raises Unreachable."""
        if self._closed:
            return
        with self._subscription() as pubsub:
            message = pubsub.get_message(timeout=self._wait)
        if message is not None:
            self._receive(str(message["channel"]))

    def catch_up(self) -> None:
        """Act on every message that was sent before this call, after the own beat if it is due. Raises Unreachable."""
        with self._subscription() as pubsub:
            messages = list(pubsub.arrived())
        for message in messages:
            self._receive(str(message["channel"]))

    def silent_for(self, drone_id: str) -> float:
        """Seconds since this drone's last beat, but at most the time this supervisor has been able to receive one."""
        last = max(self._heard.get(drone_id, float("-inf")), self._deaf_until())
        return self._core.clock.monotonic() - last

    def close(self) -> None:
        self._closed = True

    @contextmanager
    def _subscription(self) -> Iterator[CheckedSubscription]:
        """The subscription, after the own beat if it is due."""
        if self._pubsub is None:
            self._pubsub = self._core.broker.subscribe(WAKE, patterns=[names.BEAT_PATTERN])
            # Messages may have been missed, and the server may have lost data, while there was no subscription.
            self._rouse(everything=True)
        try:
            with self._core.broker.reaching():
                self._send_own()
                yield self._pubsub
        except Exception:
            self._drop()
            raise

    def _send_own(self) -> None:
        now = self._core.clock.monotonic()
        if now - self._sent_at >= self._every:
            self._sent_at = now
            self._core.broker.redis.publish(names.beat_channel(self._id), "")

    def _receive(self, channel: str) -> None:
        if channel == WAKE:
            self._rouse(everything=False)
            return
        drone_id, now = names.drone_of(channel), self._core.clock.monotonic()
        if drone_id != self._id:
            self._heard[drone_id] = now
            return
        if self._steady_since is None or now - self._own_at > _MISSED * self._every:
            self._steady_since = now
        self._own_at = now

    def _deaf_until(self) -> float:
        """The time until which no beat could have been received: now, if the own beat does not come back."""
        now = self._core.clock.monotonic()
        if self._steady_since is None or now - self._own_at > _MISSED * self._every:
            return now
        return self._steady_since

    def _drop(self) -> None:
        self._steady_since = None
        if self._pubsub is not None:
            self._pubsub.close()
            self._pubsub = None
