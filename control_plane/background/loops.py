"""Background loops: one thread each, woken or polling; a loop logs its errors and continues."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from shared.backoff import delay
from shared.errors import FleetError
from shared.terminal import logs

log = logs.get(__name__)

_REMIND_EVERY = 20
"""Number of consecutive failures of one loop per log line."""


@dataclass
class Loop:
    """A piece of work that is repeated: immediately when woken, otherwise every `every` seconds (None: never)."""

    name: str
    body: Callable[[], None]
    every: float | None
    wake: threading.Event = field(default_factory=threading.Event)
    failures: int = 0

    def run(self, stopping: threading.Event) -> None:
        """Run until `stopping`. An error ends the round, not the loop: it is logged, and the next round is delayed."""
        while not stopping.is_set():
            self.wake.clear()
            try:
                self.body()
            except Exception as error:  # noqa: BLE001 - the body of a background loop: nothing above could act on it
                self._failed(error)
                stopping.wait(min(delay(self.failures, base=0.25), 15.0))
                continue
            if self.failures:
                log.info("a loop recovered", loop=self.name, after_failures=self.failures)
                self.failures = 0
            # Whoever stops the loops sets `stopping` first: one that was woken before this round began is not missed.
            if not stopping.is_set():
                self.wake.wait(self.every)

    def _failed(self, error: Exception) -> None:
        self.failures += 1
        if self.failures % _REMIND_EVERY != 1:
            return
        if isinstance(error, FleetError):
            log.warning("a loop cannot continue", loop=self.name, what=error.what, why=error.why, code=error.code)
        else:
            log.error("a loop failed", loop=self.name, exc_info=error)


class Loops:
    """Several loops and other threads beside them, started and stopped together."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self._loops: list[Loop] = []
        self._threads: list[threading.Thread] = []

    def add(self, name: str, body: Callable[[], None], *, every: float | None) -> Loop:
        """Add a loop; it starts with `start`."""
        loop = Loop(name, body, every)
        self._loops.append(loop)
        return loop

    def start(self) -> None:
        for loop in self._loops:
            # Daemon threads: a body that hangs in a system call must not keep the process from ending.
            thread = threading.Thread(target=loop.run, args=(self.stopping,), name=loop.name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self, seconds: float = 4.0) -> list[str]:
        """End all loops after their current round; returns the names of those that did not end in time."""
        self.stopping.set()
        for loop in self._loops:
            loop.wake.set()
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return [thread.name for thread in self._threads if thread.is_alive()]
