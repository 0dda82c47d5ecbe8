"""The one event loop of a run, in a thread of its own: asyncio ends here, outside there are plain waits."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, wait
from typing import Any, TypeVar

T = TypeVar("T")
TICK = 0.05
"""Seconds between two looks at `check` while something is waited for."""
_STOP_SECONDS = 5.0


class LoopThread:
    """An event loop that runs until `stop`. A process that ends does not wait for it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        # What goes wrong in a task that nobody waits for any more is not for the terminal.
        self._loop.set_exception_handler(lambda _loop, _context: None)
        self._thread = threading.Thread(target=self._run, name="mcp servers", daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def stop(self) -> None:
        """Cancel what still runs, and end the thread; one that does not end is left behind."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            # The runner cancels what is left and closes the loop; we only want it to stand still until then.
            runner.get_loop().run_forever()


def all_done(futures: Sequence[Future[Any]], *, seconds: float, check: Callable[[], None]) -> bool:
    """Wait until all have ended, looking at `check` many times a second; False when the time is up.

    Whatever `check` raises comes out, after the futures were canceled.
    """
    deadline = time.monotonic() + seconds
    try:
        while wait(futures, timeout=TICK).not_done:
            check()
            if time.monotonic() > deadline:
                return False
    except BaseException:
        # A cancel, a limit, Ctrl-C: nobody will look at the answers any more.
        for future in futures:
            future.cancel()
        raise
    return True
