"""Notices a consumer that is connected but takes no messages: the consumer is rebuilt, and finally the worker.

Every cause (a proxy that answers for a server that is gone, a bookkeeping error in a library) shows in the same way:
the queue holds a message, there is a free slot, Redis answers, and nothing is taken.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from shared.clock import Clock

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
DEAF_SECONDS = 20.0
"""Time without a message taken, while one waits and could be taken: then the consumer counts as deaf."""
REBUILDS = 2
"""Before the whole worker is given up. The parent restarts it."""
DEAF = 70
"""Exit code of a worker that could not be made to consume."""


class Watchdog:
    """Checks every five seconds; its possible actions are `rebuild` and `end_worker`."""

    def __init__(self, slots: int, messages: Callable[[], int], clock: Clock) -> None:
        """`messages`: how many wait in the drone's queue and could be taken; may raise RedisError."""
        self._slots = slots
        self._messages = messages
        self._clock = clock
        self._lock = threading.Lock()
        self._in_hand = 0
        self._taken = 0
        self._seen = 0
        self._since: float | None = None
        self._rebuilds = 0

    @contextmanager
    def message_taken(self) -> Iterator[None]:
        """Wrap all work on one message of the queue."""
        with self._lock:
            self._taken += 1
            self._in_hand += 1
        try:
            yield
        finally:
            with self._lock:
                self._in_hand -= 1

    def guard(self, rebuild: Callable[[], None], stopping: threading.Event) -> None:
        """Check until `stopping`, in a separate thread."""

        def run() -> None:
            while not stopping.wait(LOOK_SECONDS):
                try:
                    self.check(rebuild, _exit)
                except Exception:  # the body of a background loop: this is the last one that may end
                    log.exception("the watchdog failed; retrying")

        threading.Thread(target=run, name="watchdog", daemon=True).start()

    def check(self, rebuild: Callable[[], None], end_worker: Callable[[], None]) -> None:
        """Check once, and act if the consumer has been deaf for too long. An active run keeps the worker alive."""
        now = self._clock.monotonic()
        with self._lock:
            in_hand, taken = self._in_hand, self._taken
        if taken != self._seen:
            self._seen, self._since, self._rebuilds = taken, None, 0
        if in_hand >= self._slots or not self._waiting():
            self._since = None
        elif self._since is None:
            self._since = now
        elif now - self._since >= DEAF_SECONDS:
            self._since = now
            if self._rebuilds >= REBUILDS and in_hand == 0:
                end_worker()
                return
            self._rebuilds += 1
            log.error("queued messages are not consumed; rebuilding the consumer (%s)", self._rebuilds)
            rebuild()

    def _waiting(self) -> bool:
        try:
            return self._messages() > 0
        except RedisError:
            # Nothing can be taken now; the consumer's own reconnecting handles that.
            return False


def rebuild_consumer(worker: Any) -> None:
    """Make Celery's consumer reconnect, from any thread: its event loop gets an error as if the connection broke."""

    def broken() -> None:
        raise RedisConnectionError("the consumer is not taking messages")

    worker.consumer.call_soon(broken)


def _exit() -> None:
    log.critical("the consumer still takes no messages; restarting the worker")
    # Not gracefully: the cause that blocks the main thread would block that, too. No run is active, and the journals
    # keep unsent events.
    os._exit(DEAF)
