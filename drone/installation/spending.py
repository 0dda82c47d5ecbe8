"""What the model calls of this drone cost today, in a small file that all its runs share."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shared.clock import Clock

log = logging.getLogger(__name__)


class DaySpending:
    """A sum in USD that begins anew with each local day. Processes and threads may use the same file.

    It holds what providers reported for complete answers, at LiteLLM's prices. Answers without a known price, and those
    that broke off, are not in it.
    """

    def __init__(self, file: Path, clock: Clock) -> None:
        self._file = file
        self._clock = clock

    def today(self) -> float:
        """USD spent since midnight, local time."""
        try:
            return self._read(self._file.read_text())
        except FileNotFoundError:
            return 0.0

    def add(self, usd: float) -> None:
        """Add the cost of one answer."""
        with self._locked() as file:
            total = self._read(os.pread(file, 100, 0).decode(errors="replace")) + usd
            # One write of always the same length: a process that is killed leaves the old sum or the new one.
            os.pwrite(file, f"{self._day()} {total:018.9f}\n".encode(), 0)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        file = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)

    def _read(self, text: str) -> float:
        day, _, usd = text.partition("\n")[0].partition(" ")
        try:
            return float(usd) if day == self._day() else 0.0
        except ValueError:
            log.error("%s is damaged, so nothing counts as spent before now", self._file)
            return 0.0

    def _day(self) -> str:
        return self._clock.now().astimezone().date().isoformat()
