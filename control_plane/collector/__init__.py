"""Stores what the drones report: each stream has one collector at a time, and each event counts once."""

from __future__ import annotations

from control_plane.collector.heartbeats import Beats
from control_plane.collector.listener import Listener
from control_plane.collector.reader import Reader, StreamLeaseLost
from control_plane.collector.stream_entries import with_work
from control_plane.collector.stream_leases import Streams
from control_plane.core import Core
from control_plane.core.background.leases import Owners
from control_plane.core.background.loops import Loops
from control_plane.core.background.timings import Timings

__all__ = ["Collector"]

_IN_A_ROW = 5
"""Batches of one stream before the next stream is read."""


class Collector:
    """The loops of one process; several processes share the streams."""

    def __init__(self, core: Core, holder: str, timings: Timings | None = None) -> None:
        timings = timings or Timings()
        owners = Owners(f"{holder}-c", core.clock, timings.owner_ttl)
        self._clock = core.clock
        self.loops = Loops()
        self._gather_s = timings.gather
        self._streams = Streams(core, owners)
        self._listener = Listener(core, timings.stop_within)
        self._taker = Taker(core, owners, self._streams, self._listener, timings)
        self._beats = Beats(core, self._streams, self._listener, timings)
        self.loops.add("streams", self._streams.share, every=min(timings.sweep, timings.owner_ttl / 4))
        self.loops.add("listener", self._listener.listen, every=0.0, at_once=self._listener.catch_up)
        self._listener.events_came = self.loops.add("events", self._taker.take, every=timings.sweep).wake
        beats = self.loops.add("beats", self._take_beats, every=timings.poll, at_once=self._beats.take)
        self._listener.beats_came = beats.wake

    def start(self) -> None:
        # Before the loops start, so that the first sweep finds its streams immediately.
        self._streams.share_if_possible()
        self.loops.start()

    def round(self) -> None:
        """One complete round in this thread, in the place of `start`: everything sent so far is stored, if it can be.

        A round of the loop `listener` subscribes; what was sent to the channels before the first one was not heard.
        """
        self.loops.round(self._clock.monotonic())

    def stop(self) -> list[str]:
        """End all loops and release the streams immediately; returns the loops that did not end in time."""
        self._listener.close()
        hanging = self.loops.stop()
        self._streams.release()
        return hanging

    def _take_beats(self) -> None:
        self._beats.take()
        self.loops.stopping.wait(self._gather_s)


class Taker:
    """Reads all streams of this collector, in one thread.

    Those that pub/sub announced are read immediately, and in each sweep those that are not empty: there
    also entries that were delivered and not stored.
    """

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
        filled = with_work(self._core.broker, owned)
        for drone_id in filled & self._readers.keys():
            self._readers[drone_id].reread()
        return waiting | filled

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
