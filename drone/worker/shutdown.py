"""How a worker stops: at the first signal its runs may finish, at the second they give their orders back.

This needs no broker, and does not wait for a connection to it that hangs.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import threading
from types import FrameType
from typing import Any

from celery import Celery
from celery.worker import state

from drone.worker.node import Node

log = logging.getLogger(__name__)

FINISH = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Once: take no more orders, and stop when the active runs have ended. Twice: like GIVE_BACK."""
GIVE_BACK = signal.SIGQUIT
"""Have the active runs give their orders back, and stop when they have."""
_NO_SIGNAL = 0
LOOK_SECONDS = 0.1
END_SECONDS = 30.0
"""Time for Celery to disconnect from the broker and for the last reports, once no run is left; then it exits."""


class WorkerShutdown:
    """Handles the signals of the worker process and ends it in stages."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._worker: Any = None
        self._asked = 0
        # The only queue of the standard library whose `put` is safe inside a signal handler.
        self._signals: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stop", daemon=True)

    def worker_of(self, app: Celery) -> Any:
        """Celery's worker class, with our signal handlers in place of its own."""
        base: Any = app.Worker
        take_over = self._take_over

        class Worker(base):  # type: ignore[misc]  # Celery has no types
            """Celery's own, except for the signals."""

            def install_platform_tweaks(self, worker: Any) -> None:
                super().install_platform_tweaks(worker)
                take_over(worker)

        return Worker

    def _take_over(self, worker: Any) -> None:
        self._worker = worker
        for number in (*FINISH, GIVE_BACK):
            signal.signal(number, self._on_signal)
        self._thread.start()

    def over(self) -> None:
        """Note that the main thread has ended, so that the process need not be forced to exit."""
        self._over.set()

    def finish_boot(self) -> None:
        """As the first signal, but not counted: the first one that comes after it does not hurry the runs."""
        self._signals.put(_NO_SIGNAL)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._signals.put(number)

    def _run(self) -> None:
        self._act(self._signals.get())
        while self._node.must_wait():
            try:
                self._act(self._signals.get(timeout=LOOK_SECONDS))
            except queue.Empty:
                continue
        state.should_stop = os.EX_OK
        self._worker.pool.wake()
        if not self._over.wait(END_SECONDS):
            log.warning("the broker delays the shutdown; unsent events will be sent at the next start")
            logging.shutdown()
            os._exit(os.EX_OK)

    def _act(self, number: int) -> None:
        self._asked += number != _NO_SIGNAL
        if self._asked > 1 or number == GIVE_BACK:
            self._node.give_back()
        else:
            self._node.finish()
