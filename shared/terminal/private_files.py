"""Directories that only their owner may enter, with everything in them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

PRIVATE_UMASK = 0o077
"""For processes that keep secrets or other people's work."""
_OTHERS = 0o077
_SHOWN = 3


def make_private(root: Path, ours: Iterable[Path]) -> str:
    """Take all access to `root`, and to `ours` and all below, from other users; '' or a sentence about what is left.

    Links are not followed. `root` keeps its mode where more than our files depend on it: a home directory, one of
    another user, or one like /tmp.
    """
    left = [each for top in ours for each in _tree(top) if not _closed(each)]
    if root.exists() and not _is_shared(root) and not _closed(root):
        left.append(root)
    if not left:
        return ""
    names = ", ".join(map(str, left[:_SHOWN])) + (f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else "")
    return f"other users may have access to {names}        next: chmod -R go-rwx {root}"


def _tree(top: Path) -> Iterator[Path]:
    """`top` and all below, without links. A directory comes before its content, and is then closed to other users."""
    if top.is_symlink() or not top.exists():
        return
    yield top
    for directory, directories, files in os.walk(top):
        for name in (*directories, *files):
            if not (path := Path(directory, name)).is_symlink():
                yield path


def _closed(path: Path) -> bool:
    """Whether only its owner has access, now at the latest."""
    try:
        mode = stat.S_IMODE(path.lstat().st_mode)
        if mode & _OTHERS:
            path.chmod(mode & ~_OTHERS)
    except FileNotFoundError:
        return True  # it was a temporary file
    except OSError:
        return False
    return True


def _is_shared(root: Path) -> bool:
    status = root.stat()
    return bool(status.st_mode & stat.S_ISVTX) or status.st_uid != os.geteuid() or root == Path.home()
