"""The drone's disks: how much room is left before it takes no more orders, and what a full one is called."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from shared.errors import FleetFault

FLOOR_BYTES = 100_000_000
"""With less than this free a drone takes no new orders: it could neither fetch a repository nor keep its journal."""
ENOUGH_BYTES = 150_000_000
"""So much must be free again before it does, so that it does not change its mind with every file."""
FULL = (errno.ENOSPC, errno.EDQUOT)


class DiskSpace:
    """Whether the disks with these paths have room for another order. Threads may share one."""

    def __init__(self, *paths: Path, floor: int = FLOOR_BYTES, enough: int = ENOUGH_BYTES) -> None:
        self._paths = paths
        self._floor = floor
        self._enough = enough
        self._was_full = False

    def lacking(self) -> str:
        """Where there is too little room (`80 MB free in /home/me/.dronefleet`); '' while there is enough."""
        wanted = self._enough if self._was_full else self._floor
        found = ((path, free) for path in self._paths if (free := free_bytes(path)) < wanted)
        path, free = next(found, (None, 0))
        self._was_full = path is not None
        return f"{free // 1_000_000} MB free in {path}" if path is not None else ""


def free_bytes(path: Path) -> int:
    """What a user without privileges may still write there; a directory that is yet to be made lies in its parent."""
    there = next(each for each in (path, *path.parents) if each.exists())
    stat = os.statvfs(there)
    return stat.f_bavail * stat.f_frsize


def fault_of(error: OSError) -> FleetFault:
    """A full disk in the fleet's words."""
    return FleetFault(
        "the drone's disk is full",
        code="E-DISK-FULL",
        why=str(error),
        next="free some space on the drone's machine: drone doctor shows how much is left",
    )
