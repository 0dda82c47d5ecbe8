"""An event for signal handlers."""

from __future__ import annotations

import os
import select
from contextlib import suppress


class SignalEvent:
    """Like `threading.Event`, and may be set by the handler of a signal that interrupts the thread that waits for it.

    An event of `threading` must not be: the interrupted thread may just hold its lock, and would wait for itself.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)

    def set(self) -> None:
        self._is_set = True
        # A full pipe wakes the waiting thread, too.
        with suppress(BlockingIOError):
            os.write(self._write, b"\0")

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, seconds: float | None = None) -> bool:
        """Return once it is set, or after so many seconds; whether it is set."""
        if not self._is_set:
            select.select([self._read], [], [], seconds)
        return self._is_set

    def close(self) -> None:
        """Release its two open files; no handler may set it any more."""
        os.close(self._read)
        os.close(self._write)
