"""Which streams are read when: those that pub/sub announced immediately, and in each sweep those not empty."""

from __future__ import annotations

from control_plane.background.leases import Owners
from control_plane.background.timings import Timings
from control_plane.collector.listener import Listener
from control_plane.collector.reader import Reader, StreamLeaseLost
from control_plane.collector.stream_entries import with_work
from control_plane.collector.stream_leases import Streams
from control_plane.core import Core

_IN_A_ROW = 5
"""Batches of one stream before the next stream is read."""


class Taker:
    """Reads all streams of this collector, in one thread."""

    def __init__(self, core: Core, owners: Owners, streams: Streams, listener: Listener, timings: Timings) -> None:
        self._core = core
        self._owners = owners
        self._streams = streams
        self._listener = listener
        self._timings = timings
        self._readers: dict[str, Reader] = {}
        self._swept_at = float("-inf")
        self._unfinished: set[str] = set()

    def take(self) -> None:
        """One round. Raises Unreachable if Redis or the database does not answer."""
        owned = self._streams.owned
        self._readers = {drone: reader for drone, reader in self._readers.items() if drone in owned}
        wanted = (self._listener.drones_with_events() | self._unfinished | self._due(owned)) & owned
        self._unfinished = {drone_id for drone_id in sorted(wanted) if self._take_some(drone_id)}
        if self._unfinished:
            self._listener.events_came.set()

    def _due(self, owned: frozenset[str]) -> set[str]:
        now = self._core.clock.monotonic()
        waiting = {drone for drone, reader in self._readers.items() if reader.waits}
        if now - self._swept_at < self._timings.sweep:
            return waiting
        self._swept_at = now
        return waiting | with_work(self._core.broker, owned)

    def _take_some(self, drone_id: str) -> bool:
        """True if the stream may have more."""
        reader = self._readers.get(drone_id)
        if reader is None:
            reader = Reader(self._core, self._owners, drone_id, self._timings)
            self._readers[drone_id] = reader
        try:
            for _ in range(_IN_A_ROW):
                if not reader.take():
                    return False
        except StreamLeaseLost:
            del self._readers[drone_id]
            return False
        return True
