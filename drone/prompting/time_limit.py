"""Runs possibly endless code in a separate thread, and waits for it for a limited time."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def within(seconds: float, act: Callable[[], T]) -> T:
    """Return what `act` returns, and raise what it raises.

    Raises TimeoutError when it takes longer. It is then aborted if it is running Python code; if it is blocked in a
    system call, its thread stays behind and ends with the process at the latest.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(act())
        except BaseException as error:  # noqa: BLE001 - every error is raised in the caller
            future.set_exception(error)

    thread = threading.Thread(target=run, name="bounded", daemon=True)
    thread.start()
    try:
        return future.result(seconds)
    except TimeoutError:
        if thread.is_alive() and thread.ident is not None:
            # Otherwise it would take half of the run's time, because only one thread runs Python at a time.
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
        raise
