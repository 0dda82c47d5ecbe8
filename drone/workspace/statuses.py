"""Whether a work tree is as it was, told from what the file system notes of each file, without reading any.

Git does the same with its index, but takes two processes for it. As with git, a file that was changed within the
resolution of the file system's clock could look as before: what is that new tells nothing.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from drone.sandbox.trees import walk

MOST = 4000
"""Entries of a work tree; with more, git is as quick."""
_RESOLUTION_NS = 50_000_000
"""Of the clock from which Linux takes the time of a change: 1 to 10 ms."""
_COARSE_RESOLUTION_NS = 2_000_000_000
"""Of file systems that keep whole seconds."""


@dataclass(frozen=True)
class Statuses:
    """The status of each file and directory, without `.git`."""

    entries: frozenset[tuple[str | int, ...]]
    settled: bool = field(compare=False)
    """Whether each later change must show: no file was changed just now."""


def statuses_of(work: Path) -> Statuses | None:
    """The statuses of a work tree as it is now; None if there are too many, or some cannot be read."""
    with suppress(PermissionError):
        return _statuses_of(work)
    return None


def _statuses_of(work: Path) -> Statuses | None:
    at = time.time_ns()
    entries: set[tuple[str | int, ...]] = set()
    changed_at: set[int] = set()
    for visited in walk(work, without=".git"):
        for entry in visited.entries:
            if entry.name == ".git" and not visited.names:
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # its directory shows that
            changed_at.add(status.st_ctime_ns)
            facts = (status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            entries.add((*visited.names, entry.name, *facts))
        if len(entries) > MOST:
            return None
    resolution = _RESOLUTION_NS if any(each % 1_000_000 for each in changed_at) else _COARSE_RESOLUTION_NS
    return Statuses(frozenset(entries), max(changed_at, default=0) + resolution < at)
