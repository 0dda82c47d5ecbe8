"""What a server prints beside its messages: kept in a bounded file of the run, its end in memory."""

from __future__ import annotations

from pathlib import Path

from drone.sandbox.output import LogFile

LOG_BYTES = 1024 * 1024
_LAST = 300


class ServerLog:
    """One file for all starts of one server; there is none as long as nothing was printed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: LogFile | None = None
        self._tail = b""

    def begin(self) -> None:
        """A new start: what was said before is not its last words."""
        self._tail = b""

    def write(self, chunk: bytes) -> None:
        """Keep what came on stderr."""
        self.note(chunk)
        self._tail = (self._tail + chunk[-4 * _LAST :])[-4 * _LAST :]

    def note(self, chunk: bytes) -> None:
        """Keep what came elsewhere, and is not its way of saying why it ends."""
        if self._file is None and chunk:
            self._file = LogFile(self._path, LOG_BYTES)
        if self._file is not None:
            self._file.write(chunk)

    def last_words(self) -> str:
        """The last lines for a sentence, with a colon before them; empty where there are none."""
        words = " ".join(self._tail.decode("utf-8", "replace").replace("\0", " ").split())
        return f": {words[-_LAST:]}" if words else ""

    def close(self) -> None:
        if self._file is not None:
            self._file.close(keep=True)
            self._file = None
