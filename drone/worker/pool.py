"""Celery's pool as a drone needs it: one thread per slot, each watching one run process."""

from __future__ import annotations

import itertools
import os
import threading
from contextlib import suppress
from typing import Any

from celery.concurrency.base import apply_target
from celery.concurrency.thread import ApplyResult, TaskPool


class RunPool(TaskPool):  # type: ignore[misc]  # Celery has no types
    """A thread pool that can end one job, wake the event loop when a slot is free, and stop taking new ones.

    Celery identifies a job by a process id. Here a job is a thread that watches a process, so each job gets a number
    instead, and `terminate_job` finds the run by it.
    """

    def on_start(self) -> None:
        """Celery's hook before the first job."""
        self._numbers = itertools.count(1)
        self._jobs: dict[int, str] = {}
        self._jobs_lock = threading.Lock()
        self._wake_r, self._wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def on_apply(self, target: Any, args: Any = None, kwargs: Any = None, **options: Any) -> ApplyResult:
        """Run one job in the thread of a slot."""
        number, run_id = next(self._numbers), options["correlation_id"]
        with self._jobs_lock:
            self._jobs[number] = run_id
        # Here and not in the slot's thread: the event loop asks next whether it may take another message.
        self.app.slots.take()

        def watched() -> None:
            try:
                apply_target(target, args, kwargs, options["callback"], options["accept_callback"], pid=number)
            finally:
                with self._jobs_lock:
                    del self._jobs[number]
                self.app.slots.free()
                self.wake()

        return ApplyResult(self.executor.submit(watched))

    def terminate_job(self, pid: int, signal: Any = None) -> None:
        """Ask the run that job number `pid` watches to end; nothing happens if it is over. It ends in its own way."""
        del signal
        with self._jobs_lock:
            run_id = self._jobs.get(pid)
        if run_id is not None:
            self.app.slots.terminate(run_id)

    def register_with_event_loop(self, hub: Any) -> None:
        """Celery's hook at each connection: have the loop wake up when a slot becomes free.

        Without it the next message waits for the loop's timer, up to a second.
        """
        hub.add_reader(self._wake_r, self._woken)

    def wake(self) -> None:
        """Make the event loop look again whether there is a free slot."""
        # A full pipe means that enough wake-ups are already waiting.
        with suppress(BlockingIOError):
            os.write(self._wake_w, b"x")

    @property
    def num_processes(self) -> int:
        """The number of slots; Celery takes a message only while fewer than this many are active."""
        return 0 if self.app.slots.closed else int(self.limit)

    def _woken(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._wake_r, 4096)
