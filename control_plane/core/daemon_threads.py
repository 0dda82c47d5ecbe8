"""Threads that a loop starts for work that may take long, such as a request to a server that does not answer."""

from __future__ import annotations

import threading
from collections.abc import Callable


class DaemonThreads:
    """Threads of one loop. A process that ends waits for none of them: their work is due again later."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []

    def start(self, name: str, work: Callable[..., None], *arguments: object) -> None:
        """Do `work` in a new thread."""
        thread = threading.Thread(target=work, args=arguments, name=name, daemon=True)
        self._threads = [*(each for each in self._threads if each.is_alive()), thread]
        thread.start()

    def finish(self) -> None:
        """Wait until everything that was started has ended: for a round in which nothing may stay under way."""
        for thread in self._threads:
            thread.join()
