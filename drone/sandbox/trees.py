"""Walks and removes trees that commands made: of any depth, with paths of any length, and without following links.

A command can make directories inside each other until no path leads to them, or until a recursion ends. So nothing
here uses a path: each directory is opened in the one around it, and few of them are open at a time.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class _Level:
    name: str
    length: int
    """Bytes of the path to it."""
    identity: tuple[int, int]
    waiting: list[str]
    """The directories in it that were not visited yet."""


@dataclass(frozen=True)
class Visited:
    """A directory during a walk; all of it is valid until the walk continues."""

    descriptor: int
    """For use as `dir_fd`."""
    entries: list[os.DirEntry[str]]
    _levels: list[_Level]

    @property
    def names(self) -> tuple[str, ...]:
        """The way to it from the top."""
        return tuple(level.name for level in self._levels[1:])

    @property
    def length(self) -> int:
        """Bytes of its path below the top."""
        return self._levels[-1].length


def walk(top: Path, without: str = "") -> Iterator[Visited]:
    """Visit `top` and each directory below it, outer ones first. What cannot be read, or disappears, is skipped.

    `without`: the name of a directory in `top` that is not visited.

    If a directory is moved elsewhere meanwhile, the rest of what it was in is skipped, too. Raises OSError if `top`
    cannot be read.
    """
    where, name = os.open(top, _LIST), ""
    levels: list[_Level] = []
    try:
        while True:
            with os.scandir(where) as found:
                entries = list(found)
            length = levels[-1].length + len(os.fsencode(name)) + 1 if levels else 0
            inside = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
            if not levels and without in inside:
                inside.remove(without)
            levels.append(_Level(name, length, _identity(where), inside))
            yield Visited(where, entries, levels)
            while (inner := _next(where, levels[-1])) is None:
                levels.pop()
                if not levels:
                    return
                where = _outer(where, levels, top)
            os.close(where)
            where, name = inner
    finally:
        os.close(where)


def _identity(where: int) -> tuple[int, int]:
    status = os.fstat(where)
    return status.st_dev, status.st_ino


def _next(where: int, level: _Level) -> tuple[int, str] | None:
    """The next directory to visit, opened, and its name; None after the last."""
    while level.waiting:
        name = level.waiting.pop()
        try:
            inner = os.open(name, _LIST, dir_fd=where)
        except OSError:
            continue
        if os.access("..", os.F_OK, dir_fd=inner):
            return inner, name
        os.close(inner)  # it may be read but not searched: there would be no way back
    return None


def _outer(where: int, levels: list[_Level], top: Path) -> int:
    """The directory of the last level, opened from the one in it, or `top` if that was moved elsewhere."""
    outer = os.open("..", _LIST, dir_fd=where)
    if _identity(outer) != levels[-1].identity:
        os.close(outer)
        del levels[1:]
        outer = os.open(top, _LIST)
    os.close(where)
    return outer


def remove(path: Path) -> None:
    """Remove a file, a link or a tree, even with directories that its creator locked; nothing if there is none.

    Raises OSError if something cannot be removed even then.
    """
    try:
        around = os.open(path.parent, _LIST)
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        remove_entry(path.name, around)
    except PermissionError:
        unlock(path)
        remove_entry(path.name, around)
    finally:
        os.close(around)


def remove_entry(name: str, around: int) -> None:
    """Remove what has this name in an open directory. Raises OSError, also for a locked directory."""
    try:
        if not stat.S_ISDIR(os.stat(name, dir_fd=around, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=around)
            return
    except FileNotFoundError:
        return
    top = os.open(name, _LIST, dir_fd=around)
    try:
        waiting = _emptied(top, top)
        while waiting:
            inner = os.open(waiting[-1], _LIST, dir_fd=top)
            try:
                found = _emptied(inner, top)
            finally:
                os.close(inner)
            os.rmdir(waiting.pop(), dir_fd=top)
            waiting += found
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=around)


def _emptied(directory: int, top: int) -> list[str]:
    """Remove all files of a directory and move its directories up to `top`; return their names there."""
    with os.scandir(directory) as found:
        entries = list(found)
    moved = []
    for entry in entries:
        name = entry.name
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(name, dir_fd=directory)
            continue
        if directory != top:
            name = secrets.token_hex(8)
            os.rename(entry.name, name, src_dir_fd=directory, dst_dir_fd=top)
        moved.append(name)
    return moved


def unlock(top: Path) -> None:
    """Restore our own permission to list and change each directory; links are not followed."""
    top.chmod(top.stat().st_mode | stat.S_IRWXU)
    for visited in walk(top):
        for entry in visited.entries:
            if entry.is_dir(follow_symlinks=False):
                mode = entry.stat(follow_symlinks=False).st_mode
                os.chmod(entry.name, mode | stat.S_IRWXU, dir_fd=visited.descriptor)
