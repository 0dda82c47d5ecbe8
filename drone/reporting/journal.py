"""The journal of one run: one event per line, on disk before it is acted on.

Each line is one `shared.events.Event`; `(run_id, seq)` has no gaps. The journal is the source of truth about a run: the
stream in Redis is filled from it, and can be refilled.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import Field, ValidationError

from drone.installation.disk import FULL
from shared.clock import Clock
from shared.events import Body, CommentStep, Event
from shared.wire import Wire

FILE = "journal.jsonl"
RESERVE = "reserve"
"""A file beside a journal, deleted when the disk is full so that the run can still record how it ended."""
RESERVE_BYTES = 512 * 1024
_BLOCK = 1 << 20


class _Kind(Wire):
    kind: str


class _Frame(Wire):
    """The fields that every version writes around an event's body."""

    run_id: str
    order_id: str
    generation: int
    seq: int = Field(ge=1)
    at: datetime
    body: _Kind


@dataclass(frozen=True)
class RunIdentity:
    """The run, its order and its generation: part of every event."""

    run_id: str
    order_id: str
    generation: int


@dataclass(frozen=True)
class JournalLine:
    """One event in the journal, from byte `start` up to but not including byte `end`."""

    text: str
    event: Event
    """An unknown event that a newer version wrote has a comment as its body; `text` is the original line."""
    start: int
    end: int


class Journal:
    """Appends events, each durable when `append` returns. Threads may share one; processes may not."""

    def __init__(self, path: Path, identity: RunIdentity, clock: Clock) -> None:
        """Open for appending; a partial line left by a crash is cut off, and numbering continues from there."""
        self._identity = identity
        self._clock = clock
        self._lock = threading.Lock()
        whole = tail(path)
        self.last_seq = whole.event.seq if whole else 0
        self._reserve = path.with_name(RESERVE)
        self._end = whole.end if whole else 0
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        self._cut_back()

    def append(self, body: Body) -> Event:
        """Write one event and return it; when this returns, the event survives a power cut.

        Raises OSError if it cannot be written. On a full disk the reserve is then released, so that the events at the
        end of the run have room.
        """
        with self._lock:
            event = Event(
                run_id=self._identity.run_id,
                order_id=self._identity.order_id,
                generation=self._identity.generation,
                seq=self.last_seq + 1,
                at=self._clock.now(),
                body=body,
            )
            line = event.model_dump_json().encode() + b"\n"
            try:
                _write_all(self._file, line)
                os.fdatasync(self._file)
            except OSError as error:
                self._cut_back()
                if error.errno in FULL:
                    self._reserve.unlink(missing_ok=True)
                raise
            # Only now: an event that could not be written leaves no gap, because the next one takes its number.
            self.last_seq = event.seq
            self._end += len(line)
            return event

    def stop(self) -> None:
        """Block all further writes: a writer waits until the process ends, which is about to happen."""
        self._lock.acquire()

    def close(self) -> None:
        os.close(self._file)
        self._reserve.unlink(missing_ok=True)

    def _cut_back(self) -> None:
        # A partial line in the middle would make everything after it unreadable.
        os.ftruncate(self._file, self._end)
        os.lseek(self._file, self._end, os.SEEK_SET)


def reserve(directory: Path) -> None:
    """Reserve bytes for the end of the run whose journal will be there. Raises OSError if there is no room."""
    file = os.open(directory / RESERVE, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.posix_fallocate(file, 0, RESERVE_BYTES)
    finally:
        os.close(file)


def read(path: Path, offset: int = 0, limit: int = _BLOCK) -> list[JournalLine]:
    """Return the whole lines that begin at `offset`, about `limit` bytes; a line still being written is left out."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            block = file.read(limit)
            if block and b"\n" not in block:
                block += file.readline()
    except FileNotFoundError:
        return []
    return list(_lines(block, offset))


def tail(path: Path) -> JournalLine | None:
    """Return the last whole line, or None if there is none."""
    last: JournalLine | None = None
    for line in walk(path):
        last = line
    return last


def walk(path: Path) -> Iterator[JournalLine]:
    """Iterate over all whole lines, in order."""
    offset = 0
    while lines := read(path, offset):
        yield from lines
        offset = lines[-1].end


def offset_of(path: Path, seq: int) -> int:
    """Return the byte offset at which event `seq` begins, or would begin."""
    offset = 0
    for line in walk(path):
        if line.event.seq >= seq:
            break
        offset = line.end
    return offset


@contextmanager
def opened(path: Path, identity: RunIdentity, clock: Clock) -> Iterator[Journal]:
    """A journal that is closed at the end of the block."""
    journal = Journal(path, identity, clock)
    try:
        yield journal
    finally:
        journal.close()


def _lines(block: bytes, offset: int) -> Iterator[JournalLine]:
    end = offset
    for raw in block.split(b"\n")[:-1]:
        try:
            event = _event(raw)
        except ValueError:
            # After a power cut the last block may hold zeros: the journal ends before it, and appending starts there.
            return
        start, end = end, end + len(raw) + 1
        yield JournalLine(raw.decode(), event, start, end)


def _event(raw: bytes) -> Event:
    """The event in a line. Raises ValueError if it is not an event."""
    try:
        return Event.model_validate_json(raw)
    except ValidationError:
        # A newer version ran here before this one: its events are sent unchanged, and nothing is cut off.
        frame = _Frame.model_validate_json(raw)
        what = f"Event of kind {frame.body.kind[:40]!r}, which this version does not support."
        return Event.model_validate({**dict(frame), "body": CommentStep(text=what)})


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
