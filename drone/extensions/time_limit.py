"""Foreign code in a thread of its own, for as long as we care to wait: a slow or endless one cannot hold the run up.

A thread that was given up is asked to end by an exception in it, which reaches Python code but no call into the system;
what does not end is a daemon thread, which hinders nothing but itself.
"""

from __future__ import annotations

import ctypes
import math
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from drone.agent.hooks.calling import CallFailed, at_once, inside

LOOK_UP_EVERY = 0.1
"""Seconds between two looks at whether the run is to end."""


class ForeignCalls:
    """A `drone.agent.hooks.calling.Calling`: one call at a time, each for at most `seconds`, 0 for no limit.

    `stop_waiting` says whether the run is to end; a call is then given up as well.
    """

    def __init__(self, seconds: float, stop_waiting: Callable[[], bool] = lambda: False) -> None:
        self._seconds = seconds
        self._stop_waiting = stop_waiting
        self._lock = threading.Lock()
        self._worker: _Worker | None = None

    def __call__(self, act: Callable[[], object]) -> object:
        """Return what `act` returns. Raises CallFailed."""
        if inside():
            return at_once(act)  # somebody waits for this thread already
        with self._lock:
            worker = self._worker = self._worker or _Worker()
            job = worker.take(act)
            if failed := self._waited(job):
                self._worker = None
                worker.abandon()
                raise failed
        if job.failed:
            raise job.failed
        return job.answer

    def close(self) -> None:
        """Let the thread end."""
        with self._lock:
            if self._worker:
                self._worker.leave()
            self._worker = None

    def _waited(self, job: _Job) -> CallFailed | None:
        """Wait for a job; why it is given up, or None when it is done."""
        until = time.monotonic() + (self._seconds or math.inf)
        while not job.done.wait(max(0.0, min(LOOK_UP_EVERY, until - time.monotonic()))):
            if self._stop_waiting():
                return CallFailed("the run was asked to stop", why="run_ends")
            if time.monotonic() >= until and not job.done.is_set():
                return CallFailed(f"took longer than {self._seconds:g} s", why="overdue")
        return None


class _Job:
    def __init__(self, act: Callable[[], object]) -> None:
        self.done = threading.Event()
        self.answer: object = None
        self.failed: CallFailed | None = None
        self._act = act

    def run(self) -> None:
        try:
            self.answer = at_once(self._act)
        except CallFailed as failed:
            self.failed = failed
        finally:
            self.done.set()


class _Worker:
    """A thread that runs jobs one after the other; a new one for each call would cost more than most handlers do."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="extension", daemon=True)
        self._thread.start()

    def take(self, act: Callable[[], object]) -> _Job:
        job = _Job(act)
        self._jobs.put(job)
        return job

    def leave(self) -> None:
        self._jobs.put(None)

    def abandon(self) -> None:
        self.leave()
        # `while True: pass` would take its share of the interpreter for the rest of the run.
        ident = ctypes.c_ulong(self._thread.ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(SystemExit))

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job.run()
