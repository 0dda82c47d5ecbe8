"""Paths given by a model: absolute or relative to the workspace, symlinks resolved, and always inside it."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from drone.tools.wrong_use import WrongUse

_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def resolve(workspace: Path, given: str, readable: Sequence[Path] = ()) -> Path:
    """Return the real path for a path given by the model; it need not exist.

    Raises WrongUse for a path outside the workspace and `readable`, also if a symlink leads there (S-060).
    """
    root = workspace.resolve()
    try:
        path = (root / given).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise WrongUse(f"{given[:200]!r} is not a valid path: {error}") from error
    if not any(path.is_relative_to(place) for place in (root, *map(Path.resolve, readable))):
        raise WrongUse(f"{given[:200]!r} is outside the workspace {root}; give a path inside it")
    return path


def shown(workspace: Path, path: Path) -> str:
    """The path as the model should use it: relative to the workspace, absolute if it is elsewhere."""
    root = workspace.resolve()
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def open_file(path: Path, given: str) -> BinaryIO:
    """Open a regular file for reading; a FIFO or a device is refused instead of blocking."""
    try:
        # Without O_NONBLOCK, opening a FIFO would wait for a writer; O_NOFOLLOW because the path is already resolved.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise WrongUse(f"file {given!r} not found; file_read with mode `find` lists the existing files") from error
    except OSError as error:
        if is_special(path):
            raise _not_a_file(given) from error
        raise WrongUse(f"{given!r} cannot be read: {error.strerror}") from error
    file = os.fdopen(descriptor, "rb")
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return file
    file.close()
    raise WrongUse(f"{given!r} is a directory") if stat.S_ISDIR(mode) else _not_a_file(given)


def check_writable(path: Path, given: str) -> None:
    """Refuse to overwrite anything but a writable regular file.

    Raises WrongUse for a directory, a FIFO, a device or a socket, for a read-only file and in a read-only directory:
    replacing the file could succeed, although its owner wanted to prevent that.
    """
    if path.is_dir():
        raise WrongUse(f"{given!r} is a directory; give the path of a file")
    if is_special(path):
        raise _not_a_file(given)
    for place, what in ((path, "file"), (path.parent, "directory")):
        if place.exists() and not place.stat().st_mode & _WRITABLE:
            raise WrongUse(f"the {what} {place.name!r} is read-only; to change it, run chmod with shell first")


def is_special(path: Path) -> bool:
    """Whether the path exists and is neither file, directory nor symlink."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))


def _not_a_file(given: str) -> WrongUse:
    return WrongUse(f"{given!r} is a FIFO, a device or a socket, not a file")
