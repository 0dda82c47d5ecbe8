"""Work that a run does beside its loop, in a thread, with its place in the order of events kept."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from drone.agent.protocols import Recorder
from drone.agent.values import DeltaKind, WaitsFor
from shared.events import Body


class Beside:
    """Does one piece of work at a time in a thread, beside the loop or the preparation of a run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def start(self, work: Callable[[], object]) -> None:
        """Begin, after what was begun before has ended; see `settle` for that one's error."""
        self.settle()
        # Under the lock, as another thread may settle at any moment, and cannot wait for what has not started.
        with self._lock:
            # A daemon: a run that is told to end at once does not wait for it.
            self._thread = threading.Thread(target=self._do, args=(work,), name="beside", daemon=True)
            self._thread.start()

    def settle(self) -> None:
        """Wait until the work has ended, and raise its error if it had one; within the work itself do nothing."""
        if threading.current_thread() is self._thread:
            return
        with self._lock:
            if self._thread is None:
                return
            self._thread.join()
            self._thread, error, self._error = None, self._error, None
        if error is not None:
            raise error

    def _do(self, work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised where the work is awaited
            self._error = error


@dataclass(frozen=True)
class InOrder:
    """Records an event only after the work beside the loop has recorded its own, as if it had been awaited."""

    recorder: Recorder
    work: Beside

    def record(self, body: Body) -> int:
        self.work.settle()
        return self.recorder.record(body)

    def delta(self, kind: DeltaKind, text: str) -> None:
        self.recorder.delta(kind, text)

    def doing(self, text: str, waits_for: WaitsFor = "") -> None:
        self.recorder.doing(text, waits_for)
