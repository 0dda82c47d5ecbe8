"""The event loop of a run, in a separate thread: asyncio is confined to it, other code uses blocking waits."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, wait
from typing import Any, TypeVar

T = TypeVar("T")
TICK = 0.05
"""Seconds between two calls of `check` during a wait."""
_STOP_SECONDS = 5.0


class LoopThread:
    """An event loop that runs until `stop`. Process exit does not wait for it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        # Errors of abandoned tasks must not be printed to the terminal.
        self._loop.set_exception_handler(lambda _loop, _context: None)
        self._thread = threading.Thread(target=self._run, name="mcp servers", daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def stop(self) -> None:
        """Cancel running tasks and end the thread; a thread that does not end is left behind."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            # The runner cancels remaining tasks and closes the loop at the end of this block.
            runner.get_loop().run_forever()


def all_done(futures: Sequence[Future[Any]], *, seconds: float, check: Callable[[], None]) -> bool:
    """Wait until all have ended, calling `check` many times a second; False when the time is up.

    Exceptions of `check` propagate after the futures are canceled.
    """
    deadline = time.monotonic() + seconds
    try:
        while wait(futures, timeout=TICK).not_done:
            check()
            if time.monotonic() > deadline:
                return False
    except BaseException:
        # A cancel, a limit, Ctrl-C: the answers are no longer needed.
        for future in futures:
            future.cancel()
        raise
    return True
