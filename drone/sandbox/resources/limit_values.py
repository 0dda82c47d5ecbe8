"""How much of the machine the commands of one run may use, all of them together."""

from __future__ import annotations

from dataclasses import dataclass, field

import psutil
from pydantic import ByteSize

MEMORY_SHARE = 0.75
"""Of the machine's memory, unless the owner's policy says otherwise."""
PROCESSES = 2048
"""Enough for a build on every core of a large machine; a fork bomb reaches it at once."""


def _most_memory() -> int:
    return int(psutil.virtual_memory().total * MEMORY_SHARE)


@dataclass(frozen=True)
class ResourceLimits:
    """Sizes in bytes; None: no limit."""

    memory: int | None = field(default_factory=_most_memory)
    """Of all processes together."""
    processes: int | None = PROCESSES
    cpus: float | None = None
    """Cores' worth of processor time; only a cgroup can hold commands to it."""
    file_size: int | None = None
    """Of a single file."""
    disk: int | None = None
    """Of the workspace with the session's home and /tmp."""


def readable(size: int) -> str:
    """A size as people write it, `4.0GiB`."""
    return ByteSize(size).human_readable()
