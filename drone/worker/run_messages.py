"""What a run's process is told: passed on in order, however slowly it reads, while nobody here waits for it."""

from __future__ import annotations

import logging
import queue
import threading
from multiprocessing.connection import Connection

log = logging.getLogger(__name__)

LAST_SECONDS = 5.0
"""For the thread to notice that the run's process is gone."""


class Telling:
    """Writes words to the run's pipe in a thread of its own.

    A run that hangs must make neither the heartbeat nor the inbox hang, and a person's word must not be dropped because
    the run was slow to read: so words queue up here until it reads, or is gone.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._words: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._pass_on, name="telling", daemon=True)
        self._thread.start()

    def tell(self, word: bytes) -> None:
        """Say something to the run; never waits."""
        self._words.put(word)

    def close(self) -> None:
        """Say no more. To be called when the process has ended, before its pipe is closed."""
        self._words.put(None)
        self._thread.join(LAST_SECONDS)

    def _pass_on(self) -> None:
        while (word := self._words.get()) is not None:
            try:
                self._connection.send_bytes(word)
            except (OSError, ValueError):
                # It is gone, or its end of the pipe is closed: the thread that watches it will say so.
                log.debug("a run is gone and was not told any more")
                return
