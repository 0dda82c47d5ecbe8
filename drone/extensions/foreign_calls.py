"""Runs foreign code in a separate thread with a time limit: slow or endless code cannot delay the run.

An abandoned thread is asked to end by an exception raised in it, which interrupts Python code but no system call; a
thread that does not end is a daemon thread and blocks nothing else.
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
"""Seconds between two checks whether the run has to end."""


class ForeignCalls:
    """A `drone.agent.hooks.calling.Calling`: one call at a time, each for at most `seconds`, 0 for no limit.

    `stop_waiting` returns whether the run has to end; a running call is then abandoned as well.
    """

    def __init__(self, seconds: float, stop_waiting: Callable[[], bool] = lambda: False) -> None:
        self._seconds = seconds
        self._stop_waiting = stop_waiting
        self._lock = threading.Lock()
        self._worker: _Worker | None = None

    def __call__(self, act: Callable[[], object]) -> object:
        """Return what `act` returns. Raises CallFailed."""
        if inside():
            return at_once(act)  # another call already waits for this thread
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
        """End the thread when its jobs are done."""
        with self._lock:
            if self._worker:
                self._worker.leave()
            self._worker = None

    def _waited(self, job: _Job) -> CallFailed | None:
        """Wait for a job; return why it is abandoned, or None when it is done."""
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
    """A thread that runs jobs one after the other; a new one for each call would cost more than most handlers."""

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
        # Otherwise `while True: pass` would use its share of the interpreter for the rest of the run.
        ident = ctypes.c_ulong(self._thread.ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(SystemExit))

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job.run()
