"""Calls that run at the same time, each in a thread; one signal ends all of them, and none is lost in one of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Self, TypeVar

from shared.errors import Interrupted, InterruptLoop

T = TypeVar("T")
LOOK_UP_EVERY = 0.05
"""Seconds between two checks of the controls while a call is awaited."""
_here = threading.local()


class CallBatch:
    """The threads of some calls, for the duration of a `with` block; at its end, none of them is running any more.

    The run's controls are asked by the loop's thread alone, which waits in `result`: a message with which a user
    interrupts the run comes once, and must not end in the thread of a call. The calls see its signal in their own check
    (`check_here`), and end.
    """

    def __init__(self, size: int, check: Callable[[], None]) -> None:
        self._check = check
        self._pool = ThreadPoolExecutor(size, thread_name_prefix="call")
        self.signal: InterruptLoop | None = None
        """What ends the calls that are still running; None: nothing."""

    def start(self, act: Callable[[], T]) -> Future[T]:
        """Run `act` in a thread, at once while there are fewer than `size`."""
        return self._pool.submit(self._run, act)

    def may_continue(self) -> bool:
        """Whether no signal has come, according to the run's controls."""
        if self.signal is None:
            try:
                self._check()
            except InterruptLoop as signal:
                self.signal = signal
        return self.signal is None

    def result(self, call: Future[T]) -> T:
        """Wait for a call, and return what it returned. Raises what it raised; once there is a signal, any signal."""
        while wait((call,), LOOK_UP_EVERY).not_done:
            self.may_continue()
        return call.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: TracebackType | None) -> None:
        if error is not None and self.signal is None:
            self.signal = error if isinstance(error, InterruptLoop) else InterruptLoop()
        self._pool.shutdown()

    def _run(self, act: Callable[[], T]) -> T:
        _here.batch = self
        return act()


def check_here() -> bool:
    """In the thread of a call in a batch: True, or raise a signal if the call has to end. False in other threads."""
    batch: CallBatch | None = getattr(_here, "batch", None)
    if batch is not None and batch.signal is not None:
        # Not the signal itself: it has messages for the loop. An interruption ends the command, but not the run.
        raise Interrupted if isinstance(batch.signal, Interrupted) else InterruptLoop
    return batch is not None
