"""Output of a server other than its messages: kept in a bounded file of the run, its end in memory."""

from __future__ import annotations

from pathlib import Path

from drone.sandbox.output import LogFile

LOG_BYTES = 1024 * 1024
_LAST = 300


class ServerLog:
    """One file for all starts of one server; it is created when something is printed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: LogFile | None = None
        self._tail = b""

    def begin(self) -> None:
        """Begin a new start: earlier output does not count as its last output."""
        self._tail = b""

    def write(self, chunk: bytes) -> None:
        """Keep output from stderr."""
        self.note(chunk)
        self._tail = (self._tail + chunk[-4 * _LAST :])[-4 * _LAST :]

    def note(self, chunk: bytes) -> None:
        """Keep output from elsewhere, which does not explain why the server ended."""
        if self._file is None and chunk:
            self._file = LogFile(self._path, LOG_BYTES)
        if self._file is not None:
            self._file.write(chunk)

    def last_words(self) -> str:
        """The last lines with a leading colon, to append to a sentence; empty if there are none."""
        words = " ".join(self._tail.decode("utf-8", "replace").replace("\0", " ").split())
        return f": {words[-_LAST:]}" if words else ""

    def close(self) -> None:
        if self._file is not None:
            self._file.close(keep=True)
            self._file = None
