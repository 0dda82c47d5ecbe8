"""The output of a command, in bounded memory: head and tail for the model, at most 50 MB on disk."""

from __future__ import annotations

import codecs
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from shared.redaction import cut_off, cut_short

SHOWN = 10_000
"""Characters shown to the model in full; of a longer output, half from the head and half from the tail."""
LOG_BYTES = 50 * 1024 * 1024
LIVE_CHARACTERS = 200_000
"""Characters that are shown live; the log has the rest."""
_NUL = "\N{SYMBOL FOR NULL}"
_COPY = 1024 * 1024


class Output:
    """Collects bytes from a reader thread; provides the text shown, the log, and new text for the live display.

    Invalid UTF-8 becomes U+FFFD, a sequence split over two reads is kept together, and NUL becomes a visible sign:
    neither JSON readers nor PostgreSQL accept it.
    """

    def __init__(self, log: Path | None = None) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = HeadAndTail(SHOWN)
        self._log = LogFile(log, LOG_BYTES) if log else None
        self._live: list[str] = []
        self._live_left = LIVE_CHARACTERS
        self._lock = threading.Lock()
        self.total_bytes = 0
        self._told_bytes = 0

    def feed(self, chunk: bytes) -> None:
        with self._lock:
            self.total_bytes += len(chunk)
            if self._log:
                self._log.write(chunk)
            self._add(self._decoder.decode(chunk))

    def news(self) -> str | None:
        """The text since the last call, for the live display; '' if it is no longer shown, None if nothing came."""
        with self._lock:
            came, self._told_bytes = self.total_bytes > self._told_bytes, self.total_bytes
            text = "".join(self._live)
            self._live.clear()
            return text if came or text else None

    def close(self) -> Path | None:
        """Finish; return the path of the log if it holds more than `text()` shows, otherwise remove it."""
        with self._lock:
            self._add(self._decoder.decode(b"", final=True))
            return self._log.close(keep=self._text.elided > 0) if self._log else None

    @property
    def no_log(self) -> str:
        """Why `close` returns no log although `text()` is not all; '' if it does, or need not."""
        with self._lock:
            return self._log.problem if self._log and self._text.elided else ""

    def text(self) -> str:
        with self._lock:
            return self._text.text()

    def _add(self, text: str) -> None:
        text = text.replace("\0", _NUL)
        self._text.add(text)
        if self._live_left > 0 and text:
            self._live.append(text[: self._live_left])
            self._live_left -= len(text)
            if self._live_left <= 0:
                self._live.append("\n[further output is not shown live]\n")


_MARGIN = 4096
"""Characters before the tail that show whether a secret begins there."""


class HeadAndTail:
    """A text of which only the beginning and the end are kept once it is longer than `limit` characters."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._half = limit // 2
        self._head = ""
        self._tail = ""
        self._length = 0

    @property
    def elided(self) -> int:
        """Characters that `text` leaves out."""
        return self._length - 2 * self._half if self._length > self._limit else 0

    def add(self, text: str) -> None:
        self._length += len(text)
        room = self._limit - len(self._head)
        if room > 0:
            self._head += text[:room]
        kept = self._half + _MARGIN
        self._tail = (self._tail + text)[-kept:] if len(text) < kept else text[-kept:]

    def text(self) -> str:
        if not self.elided:
            return self._head
        head, tail = cut_short(self._head, self._half), cut_off(self._tail, self._half)
        return f"{head}\n[… {self.elided:,} characters elided …]\n{tail}"


class LogFile:
    """A file of at most `limit` bytes: the first half of it is the head, the second half a ring with the tail.

    If it cannot be written, it is removed, and what comes later is dropped: on a full disk, the pipe of a command must
    still be emptied.
    """

    def __init__(self, path: Path, limit: int) -> None:
        self._path = path
        self._unrolled = path.with_name(path.name + ".unrolled")
        self._half = limit // 2
        self._written = 0
        self._file: BinaryIO | None = None
        self.problem = ""
        """Why there is no log; '' if there is one."""
        with self._or_none():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("w+b")

    def write(self, chunk: bytes) -> None:
        # A chunk longer than the ring is cut by the loop's steps like any other.
        while chunk and self._file is not None:
            position, room = self._place()
            part, chunk = chunk[:room], chunk[room:]
            with self._or_none():
                self._file.seek(position)
                self._file.write(part)
                self._written += len(part)

    def close(self, *, keep: bool) -> Path | None:
        """Put the ring into order; remove the file unless `keep`. Returns its path if there is one."""
        if self._file is None:
            return None
        with self._or_none():
            if keep and self._written > 2 * self._half:
                self._unroll(self._file)
            self._file.close()
            if keep:
                return self._path
            self._path.unlink(missing_ok=True)
        return None

    @contextmanager
    def _or_none(self) -> Iterator[None]:
        """Inside, an error of the disk leaves no file, and its space is free again."""
        try:
            yield
        except OSError as error:
            self.problem = error.strerror or str(error)
            file, self._file = self._file, None
            if file is not None:
                with suppress(OSError):
                    file.close()
                for path in (self._path, self._unrolled):
                    with suppress(OSError):
                        path.unlink(missing_ok=True)

    def _place(self) -> tuple[int, int]:
        """Where the next byte goes, and how many fit there before the end of the head or of the ring."""
        if self._written < self._half:
            return self._written, self._half - self._written
        offset = (self._written - self._half) % self._half
        return self._half + offset, self._half - offset

    def _unroll(self, source: BinaryIO) -> None:
        """Write the head, a line that names the gap, and the ring from its oldest byte on, to a new file."""
        start, _ = self._place()
        left_out = self._written - 2 * self._half
        with self._unrolled.open("wb") as target:
            _copy(source, target, 0, self._half)
            target.write(f"\n[… {left_out:,} bytes elided …]\n".encode())
            _copy(source, target, start, 2 * self._half)
            _copy(source, target, self._half, start)
        self._unrolled.replace(self._path)


def _copy(source: BinaryIO, target: BinaryIO, start: int, end: int) -> None:
    source.seek(start)
    left = end - start
    while left > 0 and (piece := source.read(min(left, _COPY))):
        target.write(piece)
        left -= len(piece)
