"""Background loops: one thread each, woken or polling; a loop logs its errors and continues.

With a clock that is set by hand, they run in rounds instead, in the thread of the caller: `Loops.round`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from shared.backoff import delay
from shared.errors import FleetError
from shared.terminal import logs

log = logs.get(__name__)

_REMIND_EVERY = 20
"""Number of consecutive failures of one loop per log line."""
_PASSES = 100
"""A round in which loops wake each other more often than this would never end."""


@dataclass
class Loop:
    """A piece of work that is repeated: immediately when woken, otherwise every `every` seconds (None: never)."""

    name: str
    body: Callable[[], None]
    every: float | None
    at_once: Callable[[], None] | None = None
    """In the place of a body that waits, when rounds are run by hand: does what there is to do, without waiting."""
    wake: threading.Event = field(default_factory=threading.Event)
    failures: int = 0
    error: Exception | None = None
    """What ended the last round, if it failed."""
    due_at: float | None = float("-inf")
    """When the next round of `Loops.round` is due without a wake-up; None: never."""

    def run(self, stopping: threading.Event) -> None:
        """Run until `stopping`. An error ends the round, not the loop: it is logged, and the next round is delayed."""
        while not stopping.is_set():
            self._round(self.body)
            if self.failures:
                stopping.wait(self._pause)
            # Whoever stops the loops sets `stopping` first: one that was woken before this round began is not missed.
            elif not stopping.is_set():
                self.wake.wait(self.every)

    def round_if_due(self, now: float) -> bool:
        """One round if the loop was woken or its time has come; whether it was."""
        woken = self.wake.is_set() and not self.failures
        if not woken and (self.due_at is None or now < self.due_at):
            return False
        self._round(self.at_once or self.body)
        pause = self._pause if self.failures else self.every
        self.due_at = None if pause is None else now + pause
        return True

    def _round(self, body: Callable[[], None]) -> None:
        self.wake.clear()
        try:
            body()
        except Exception as error:  # noqa: BLE001 - the body of a background loop: nothing above could act on it
            self._failed(error)
        else:
            if self.failures:
                log.info("a loop recovered", loop=self.name, after_failures=self.failures)
            self.failures, self.error = 0, None

    @property
    def _pause(self) -> float:
        """Seconds after a failed round."""
        return min(delay(self.failures, base=0.25), 15.0)

    def _failed(self, error: Exception) -> None:
        self.failures += 1
        self.error = error
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

    def add(
        self,
        name: str,
        body: Callable[[], None],
        *,
        every: float | None,
        at_once: Callable[[], None] | None = None,
    ) -> Loop:
        """Add a loop; it starts with `start`. `at_once`: see Loop."""
        loop = Loop(name, body, every, at_once)
        self._loops.append(loop)
        return loop

    def __iter__(self) -> Iterator[Loop]:
        return iter(self._loops)

    def start(self) -> None:
        for loop in self._loops:
            # Daemon threads: a body that hangs in a system call must not keep the process from ending.
            thread = threading.Thread(target=loop.run, args=(self.stopping,), name=loop.name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def round(self, now: float) -> None:
        """Run in this thread what is due at `now` (monotonic seconds), and what that wakes, until nothing is left.

        Instead of `start`. Errors are logged and kept, as in a thread (`errors`).
        """
        ran = [loop.round_if_due(now) for loop in self._loops]
        for _ in range(_PASSES):
            if not any(ran):
                return
            ran = [loop.wake.is_set() and loop.round_if_due(now) for loop in self._loops]
        woken = [loop.name for loop in self._loops if loop.wake.is_set()]
        raise RuntimeError(f"these loops wake each other without end: {', '.join(woken)}")

    @property
    def errors(self) -> dict[str, Exception]:
        """What ended the last round of each loop whose last round failed."""
        return {loop.name: loop.error for loop in self._loops if loop.error is not None}

    def stop(self, seconds: float = 4.0) -> list[str]:
        """End all loops after their current round; returns the names of those that did not end in time."""
        self.stopping.set()
        for loop in self._loops:
            loop.wake.set()
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return [thread.name for thread in self._threads if thread.is_alive()]
