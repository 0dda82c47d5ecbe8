"""Enters directories that commands can change: each is opened in the one before it, and no symlink is followed.

A path can be checked and a moment later lead elsewhere, because a process of the model exchanged a directory for a
symlink. An open directory stays the one that was opened.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

# O_PATH, which macOS does not have, also enters directories that may be searched but not read.
_ENTER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def enter(name: str | Path, around: int | None = None) -> int:
    """Return a descriptor of a directory, for use as `dir_fd`. Raises OSError, also if it is a symlink."""
    return os.open(name, _ENTER, dir_fd=around)


def descend(root: Path, names: Sequence[str], step: Callable[[str, int], int] = enter) -> int:
    """Return a descriptor of the directory that `names` lead to from `root`. Raises OSError.

    `step` opens each directory in the one before it.
    """
    where = enter(root)
    for name in names:
        around = where
        try:
            where = step(name, around)
        finally:
            os.close(around)
    return where
