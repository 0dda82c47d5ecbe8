"""Waits for work that cannot be interrupted, so that a cancel and a time limit are noticed meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

T = TypeVar("T")
TICK = 0.05
"""Seconds between two looks at whether the wait has to end."""


def watched(work: Callable[[], T], watch: Callable[[], None], discard: Callable[[T], object]) -> T:
    """Return what `work` returns, or raise what it or `watch` raises.

    `watch` is called from the caller's thread, many times a second. If it raises, the work is left behind: it ends when
    its system call does, and a result that still arrives goes to `discard`.
    """
    future: Future[T] = Future()
    threading.Thread(target=_resolve, args=(future, work), name="web_fetch", daemon=True).start()
    try:
        while not wait((future,), TICK).done:
            watch()
    except BaseException:
        future.add_done_callback(lambda done: None if done.exception() else discard(done.result()))
        raise
    return future.result()


def _resolve(future: Future[T], work: Callable[[], T]) -> None:
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 - every error is raised in the caller
        future.set_exception(error)
    else:
        future.set_result(result)
