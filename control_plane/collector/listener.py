"""Learns by pub/sub which streams have new entries, and keeps the latest beat of each drone until it is written."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from control_plane.core import Core
from shared import names
from shared.subscriptions import CheckedSubscription

MAX_MESSAGE = 1024 * 1024
"""Characters. A larger message is dropped: sealed events have at most 256 kB, a beat with 1,000 runs about 400 kB."""


class Listener:
    """One subscription, in its own thread. A missed message costs only a short delay: the sweep checks every stream."""

    def __init__(self, core: Core, stop_within: float) -> None:
        self._core = core
        self._stop_within = stop_within
        self._pubsub: CheckedSubscription | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._with_events: set[str] = set()
        self._beats: dict[str, tuple[float, str]] = {}
        self.events_came = threading.Event()
        self.beats_came = threading.Event()

    def listen(self) -> None:
        """Wait for one message and record it. Raises Unreachable."""
        if self._closed:
            return
        with self._subscription() as pubsub:
            message = pubsub.get_message(timeout=self._stop_within)
        if message is not None:
            self._note(str(message["channel"]), str(message["data"]))

    def catch_up(self) -> None:
        """Record every message that was sent before this call. Raises Unreachable."""
        with self._subscription() as pubsub:
            messages = list(pubsub.arrived())
        for message in messages:
            self._note(str(message["channel"]), str(message["data"]))

    def drones_with_events(self) -> set[str]:
        """Drones whose streams have new entries since the last call."""
        with self._lock:
            found, self._with_events = self._with_events, set()
        return found

    def beats(self, younger_than_s: float) -> dict[str, str]:
        """The latest sealed beat of each drone since the last call, if younger than `younger_than_s` seconds."""
        oldest = self._core.clock.monotonic() - younger_than_s
        with self._lock:
            found, self._beats = self._beats, {}
        return {drone: envelope for drone, (at, envelope) in found.items() if at >= oldest}

    def close(self) -> None:
        self._closed = True

    def _note(self, channel: str, text: str) -> None:
        drone_id = names.drone_of(channel)
        if len(text) > MAX_MESSAGE:
            # Checked before anything else: reading it would delay the beats of all other drones.
            return
        if channel == names.beat_channel(drone_id):
            # The control plane's own beats have no content.
            if text:
                with self._lock:
                    self._beats[drone_id] = (self._core.clock.monotonic(), text)
                self.beats_came.set()
        elif _is_event(text):
            with self._lock:
                self._with_events.add(drone_id)
            self.events_came.set()

    @contextmanager
    def _subscription(self) -> Iterator[CheckedSubscription]:
        try:
            with self._core.broker.reaching():
                if self._pubsub is None:
                    patterns = [names.LIVE_PATTERN, names.BEAT_PATTERN]
                    self._pubsub = self._core.broker.subscribe(patterns=patterns)
                yield self._pubsub
        except Exception:
            self._drop()
            raise

    def _drop(self) -> None:
        if self._pubsub is not None:
            self._pubsub.close()
            self._pubsub = None


def _is_event(text: str) -> bool:
    """Whether a live message is a copy of a stream entry; text deltas, which are the majority, are not."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(message, dict) and message.get("t") != "delta"
