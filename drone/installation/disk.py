"""The drone's disks: the free space below which it takes no more orders, and the error for a full disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from shared.errors import FleetFault

FLOOR_BYTES = 100_000_000
"""With less free space a drone takes no new orders: it could neither fetch a repository nor keep its journal."""
ENOUGH_BYTES = 150_000_000
"""Free space required before it takes orders again, so that it does not switch back and forth with every file."""
FULL = (errno.ENOSPC, errno.EDQUOT)


class DiskSpace:
    """Whether the disks with these paths have room for another order. Threads may share an instance."""

    def __init__(self, *paths: Path, floor: int = FLOOR_BYTES, enough: int = ENOUGH_BYTES) -> None:
        self._paths = paths
        self._floor = floor
        self._enough = enough
        self._was_full = False

    def lacking(self) -> str:
        """The place with too little room (`80 MB free in /home/me/.dronefleet`); '' while there is enough."""
        wanted = self._enough if self._was_full else self._floor
        found = ((path, free) for path in self._paths if (free := free_bytes(path)) < wanted)
        path, free = next(found, (None, 0))
        self._was_full = path is not None
        return f"{free // 1_000_000} MB free in {path}" if path is not None else ""


def free_bytes(path: Path) -> int:
    """Bytes that an unprivileged user can still write there; a missing directory counts as its nearest parent."""
    stat = os.statvfs(existing(path))
    return stat.f_bavail * stat.f_frsize


def existing(path: Path) -> Path:
    """The directory itself, or its nearest parent that exists."""
    return next(each for each in (path, *path.parents) if each.exists())


def fault_of(error: OSError) -> FleetFault:
    """The fleet's error for a full disk."""
    return FleetFault(
        "the drone's disk is full",
        code="E-DISK-FULL",
        why=str(error),
        next="free some space on the drone's machine: drone doctor shows how much is left",
    )
