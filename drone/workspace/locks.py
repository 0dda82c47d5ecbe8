"""Kernel locks (flock): they are released when their holder ends for any reason."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_TICK = 0.05


class Busy(Exception):
    """Another holder kept the lock for the whole waiting time."""


class FileLock:
    """An exclusive lock on a file, held until `release`, or until the process ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = self._opened()

    def take(self, *, seconds: float, check: Callable[[], None]) -> None:
        """Wait for the lock; `check` may raise to give up.

        Raises Busy when the time is up.
        """
        deadline = time.monotonic() + seconds
        try:
            while not self._try():
                check()
                if time.monotonic() > deadline:
                    raise Busy
                time.sleep(_TICK)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _try(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if self._is_in_place():
            return True
        # Its last holder removed the directory that it was in.
        os.close(self._descriptor)
        self._descriptor = self._opened()
        return False

    def _opened(self) -> int:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._descriptor), self._path.stat())
        except FileNotFoundError:
            return False


@contextmanager
def held(path: Path, *, seconds: float, check: Callable[[], None]) -> Iterator[None]:
    """Hold the lock for a block."""
    lock = FileLock(path)
    lock.take(seconds=seconds, check=check)
    try:
        yield
    finally:
        lock.release()
