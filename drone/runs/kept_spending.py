"""What a run has spent, in a small file: the process that reports the end of a crashed run reads it."""

from __future__ import annotations

import os
from pathlib import Path

from shared.amounts import dollars


class KeptSpending:
    """One line of USD, written in place. It survives the process; after a power failure only `granted` is certain."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._granted = 0

    def granted(self, nusd: int) -> None:
        """Write what the run may spend, in nanodollars, if that has changed.

        Of more, it spends nothing before; less is certain only once the control plane has answered.
        """
        if nusd == self._granted:
            return
        self._granted = nusd
        os.pwrite(self._file, f"{_usd(nusd)} ".encode(), 0)
        os.fdatasync(self._file)

    def write(self, spent: int, in_flight: int) -> None:
        """Replace what was spent, and what the calls in flight may cost, in nanodollars."""
        line = f"{_usd(self._granted)} {_usd(spent)} {_usd(in_flight)}\n"
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


def _usd(nusd: int) -> str:
    return f"{dollars(nusd):030.12f}"
