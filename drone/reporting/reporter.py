"""The thread that sends the recorded events: every journal, in order, even if the connection fails."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from redis.exceptions import NoPermissionError, RedisError

from drone.reporting import journal
from drone.reporting.journal import JournalLine
from drone.reporting.stream import Stream, StreamFull
from drone.reporting.uplink import why_unreachable
from shared.clock import Clock
from shared.events import Delta, Event

log = logging.getLogger(__name__)

IDLE_SECONDS = 1.0
"""A run wakes the reporter for each event; this covers a lost wake-up."""
RETRY_SECONDS = 1.0
BATCH_BYTES = 256 * 1000
MAX_DELTAS = 1000
"""Pieces of live text that are kept while Redis is slow; the oldest are dropped first."""


class JournalDirectory(Protocol):
    """The location of a run's journal, and of the record of its sending."""

    @property
    def run_id(self) -> str: ...

    @property
    def journal(self) -> Path: ...

    @property
    def sent(self) -> Path:
        """How far the journal is known to be in the stream; may lag behind, but never runs ahead."""
        ...


OnEvent = Callable[[Event], None]


class _Source:
    """One journal, and how far it was sent."""

    def __init__(self, directory: JournalDirectory, on_event: OnEvent) -> None:
        self.directory = directory
        self.on_event = on_event
        self.offset = _sent_offset(directory)
        self.resends = 0
        """The number of resend requests: shows a batch being sent that its end is not the new offset."""

    def next_lines(self) -> list[JournalLine]:
        return journal.read(self.directory.journal, self.offset, BATCH_BYTES)

    def unsent_bytes(self) -> int:
        try:
            return max(0, self.directory.journal.stat().st_size - self.offset)
        except FileNotFoundError:
            return 0

    def sent(self, lines: list[JournalLine]) -> None:
        """Save that `lines` are in the stream. After a crash before that some are sent twice; seq makes it harmless."""
        self.offset = lines[-1].end
        # A full disk must not prevent events from being sent; they may be sent twice then.
        with suppress(OSError):
            self.directory.sent.write_text(str(self.offset))


class Reporter:
    """Tails the journals of all runs and sends each event that is not known to be in the stream.

    Events of one run are sent in order and without gaps: a batch that may not have arrived is sent again, complete,
    before anything newer. While Redis is unavailable nothing is lost, because the journals are the spool.
    """

    def __init__(self, stream: Stream, clock: Clock) -> None:
        self._stream = stream
        self._clock = clock
        self._sources: dict[str, _Source] = {}
        self._deltas: list[Delta] = []
        self._lock = threading.Lock()
        self._work = threading.Event()
        self._idle = threading.Condition(self._lock)
        self._busy = False
        self._stopping = False
        self._reachable = True
        self.stream_full = False
        """Whether sending is paused, because the control plane does not read what was sent."""
        self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)

    def start(self) -> None:
        """Start sending. Call this after the drone's hello, which must precede all other messages of this boot."""
        self._thread.start()

    def send_unsent(self) -> None:
        """Send everything that older boots left in the journals, in this thread and before `start`.

        Raises redis.exceptions.RedisError; the next call then sends what may not have arrived.
        """
        while self._send_batches():
            pass

    def round(self) -> bool:
        """One complete round of the thread: send everything that is recorded; False if that failed, which is logged."""
        try:
            self.send_unsent()
        except RedisError as error:
            self._now_reachable(error)
            return False
        except Exception:  # the body of a background loop: a bug in one round must not end reporting for good
            log.exception("reporting failed; retrying")
            return False
        self._now_reachable(None)
        return True

    def follow(self, directory: JournalDirectory, on_event: OnEvent = lambda _: None) -> None:
        """Send this journal too, from where sending stopped; `on_event` is called with each event before it is sent."""
        with self._lock:
            self._sources[directory.run_id] = _Source(directory, on_event)
        self._work.set()

    def wake(self) -> None:
        """Notify the reporter of a new event."""
        self._work.set()

    def delta(self, delta: Delta) -> None:
        """Send live text, before the next event that the run records."""
        with self._lock:
            self._deltas.append(delta)
            del self._deltas[:-MAX_DELTAS]
        self._work.set()

    def resend(self, run_id: str, from_seq: int) -> bool:
        """Send a run's events from `from_seq` again; False if there is no such journal here."""
        with self._lock:
            source = self._sources.get(run_id)
            if source is None:
                return False
            source.offset = min(source.offset, journal.offset_of(source.directory.journal, from_seq))
            source.resends += 1
        self._work.set()
        return True

    def drop(self, run_id: str) -> None:
        """Stop following a run."""
        with self._lock:
            self._sources.pop(run_id, None)

    def flush(self, seconds: float) -> bool:
        """Wait until all events recorded so far are in the stream; False if that takes longer."""
        self._work.set()
        deadline = self._clock.monotonic() + seconds
        with self._idle:
            while self._busy or any(source.next_lines() for source in self._sources.values()):
                left = deadline - self._clock.monotonic()
                if left <= 0:
                    return False
                self._idle.wait(min(left, 0.1))
        return True

    def unsent_bytes(self) -> int:
        """The size of all recorded events that are not known to be in the stream."""
        with self._lock:
            sources = list(self._sources.values())
        return sum(source.unsent_bytes() for source in sources)

    def stop(self) -> None:
        self._stopping = True
        self._work.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _run(self) -> None:
        while not self._stopping:
            self._work.wait(IDLE_SECONDS)
            self._work.clear()
            if not self.round():
                self._clock.sleep(RETRY_SECONDS)
                self._work.set()

    def _send_batches(self) -> bool:
        """Send pending events, one batch of each journal; True if there may be more."""
        with self._lock:
            deltas, self._deltas = self._deltas, []
            sources = list(self._sources.values())
            self._busy = True
        try:
            # Taken once and not kept: live text that does not arrive now is useless later.
            return self._send(deltas, sources)
        finally:
            with self._idle:
                self._busy = False
                self._idle.notify_all()

    def _send(self, deltas: list[Delta], sources: Iterable[_Source]) -> bool:
        more = False
        for source in sources:
            with self._lock:
                resends, lines = source.resends, source.next_lines()
            own = [delta for delta in deltas if delta.run_id == source.directory.run_id]
            for line in lines:
                source.on_event(line.event)
            if lines or own:
                self._stream.send(own, lines)
            if lines:
                self._remember(source, lines, resends)
                more = True
        return more

    def _remember(self, source: _Source, lines: list[JournalLine], resends: int) -> None:
        with self._lock:
            # A resend requested meanwhile wins, even one to where this batch began: offsets alone do not show it.
            if source.resends == resends:
                source.sent(lines)

    def _now_reachable(self, error: RedisError | None) -> None:
        self.stream_full = isinstance(error, StreamFull)
        if self._reachable != (error is None):
            self._reachable = error is None
            if error is None:
                log.info("sending the recorded events again")
            elif isinstance(error, StreamFull):
                log.warning("sending events is paused (%s); they are kept in the journal, and runs continue", error)
            elif isinstance(error, NoPermissionError):
                log.warning(
                    "the broker accepts no events of this drone now; they are kept in the journal (E-DRONE-QUOTA)"
                )
            else:
                why = why_unreachable(self._stream.redis, error)
                log.warning("the broker does not answer (%s); events are kept in the journal", why)


def _sent_offset(directory: JournalDirectory) -> int:
    with suppress(FileNotFoundError, ValueError):
        return int(directory.sent.read_text())
    return 0
