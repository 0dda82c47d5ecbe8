"""What a run has spent, in a small file: the process that reports the end of a crashed run reads it."""

from __future__ import annotations

import os
from pathlib import Path


class KeptSpending:
    """One line, written in place. It survives the process; after a power failure only `granted` is certain."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._granted = 0.0

    def granted(self, usd: float) -> None:
        """Write what the run may spend, before it spends any of it."""
        self._granted = usd
        os.pwrite(self._file, f"{usd:030.12f} ".encode(), 0)
        os.fdatasync(self._file)

    def write(self, spent: float, in_flight: float) -> None:
        """Replace what was spent, and what the calls in flight may cost. USD, as all figures."""
        line = f"{self._granted:030.12f} {spent:030.12f} {in_flight:030.12f}\n"
        os.pwrite(self._file, line.encode(), 0)


def kept_spending(path: Path, *, rebooted: bool) -> float:
    """USD that a run may have spent at most; 0.0 if it kept nothing.

    `rebooted`: the machine went down after it, so the line may be older than what the run did.
    """
    try:
        granted, *used = (float(word) for word in path.read_text().split())
    except (OSError, ValueError):
        return 0.0
    spent = sum(used)
    return max(granted, spent) if rebooted else spent
