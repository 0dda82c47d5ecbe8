"""Opens and replaces files in the workspace by way of open directories, without following any symlink.

A place has no symlink in its path when it is resolved. If a process of the model has exchanged a directory for one
since, entering it is an error; everything else happens relative to the directory that was entered.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from drone.sandbox.entering import descend, enter
from drone.tools.paths import LocatedPath, is_special_mode
from drone.tools.wrong_use import WrongUse

# Without O_NONBLOCK, opening a FIFO would wait for a writer.
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_RIGHTS = 0o777


@contextmanager
def directory_of(place: LocatedPath) -> Iterator[int]:
    """The open directory of a file to read or change. Raises WrongUse if there is none."""
    try:
        directory = descend(place.root, place.directories)
    except OSError as error:
        raise _unreadable(place, error) from error
    try:
        yield directory
    finally:
        os.close(directory)


@contextmanager
def made_directory_of(place: LocatedPath) -> Iterator[int]:
    """The open directory of a file to write; it is made if it is missing, as are its parents.

    Each new directory belongs to the owner of the one above it. Raises WrongUse if that is not possible.
    """
    try:
        directory = descend(place.root, place.directories, _made)
    except OSError as error:
        raise _unwritable(place, error) from error
    try:
        yield directory
    finally:
        os.close(directory)


def open_in(directory: int, place: LocatedPath) -> int:
    """Return a descriptor for reading a regular file or listing a directory.

    Raises WrongUse if there is none; a FIFO or a device is refused instead of blocking.
    """
    try:
        descriptor = os.open(place.name, _READ, dir_fd=directory)
    except OSError as error:
        if is_special_mode(_mode(directory, place) or stat.S_IFREG):
            raise _not_a_file(place) from error
        raise _unreadable(place, error) from error
    if is_special_mode(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_a_file(place)
    return descriptor


def check_writable(directory: int, place: LocatedPath) -> None:
    """Refuse to overwrite anything but a writable regular file.

    Raises WrongUse for a directory, a FIFO, a device or a socket, for a read-only file and in a read-only directory:
    replacing the file could succeed, although its owner wanted to prevent that.
    """
    mode = _mode(directory, place)
    if mode is not None and stat.S_ISDIR(mode):
        raise WrongUse(f"{place.given!r} is a directory; give the path of a file")
    if mode is not None and is_special_mode(mode):
        raise _not_a_file(place)
    if mode is not None and not mode & _WRITABLE:
        raise _read_only("file", place.name)
    if not os.fstat(directory).st_mode & _WRITABLE:
        raise _read_only("directory", place.path.parent.name)


def replace_content(directory: int, place: LocatedPath, content: bytes) -> None:
    """Replace the content atomically: a full disk leaves the old file unchanged. The file keeps its mode and owner.

    A new file belongs to the owner of its directory. Raises WrongUse when that is not possible.
    """
    fresh = f".{place.name[:100]}.{secrets.token_hex(4)}.new"
    try:
        old = _status(directory, place)
        with os.fdopen(os.open(fresh, _CREATE, 0o666, dir_fd=directory), "wb") as file:
            file.write(content)
            _own_like(file.fileno(), old or os.fstat(directory))
            if old is not None:
                os.fchmod(file.fileno(), old.st_mode & _RIGHTS)
        os.replace(fresh, place.name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(fresh, dir_fd=directory)
        if isinstance(error, OSError):
            # The error names the requested file, not the temporary one next to it.
            raise _unwritable(place, error) from error
        raise


def _made(name: str, around: int) -> int:
    """Enter a directory, which is made if it is missing."""
    with suppress(FileNotFoundError):
        return enter(name, around)
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=around)
        made = os.open(name, _READ | os.O_DIRECTORY, dir_fd=around)
        try:
            _own_like(made, os.fstat(around))
        finally:
            os.close(made)
    return enter(name, around)


def _own_like(descriptor: int, other: os.stat_result) -> None:
    """Only root can: on its drones, the workspace belongs to the account of the commands."""
    if os.geteuid() == 0:
        os.fchown(descriptor, other.st_uid, other.st_gid)


def _status(directory: int, place: LocatedPath) -> os.stat_result | None:
    """The status of the file itself, even if it has become a symlink; None if there is none."""
    try:
        return os.stat(place.name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _mode(directory: int, place: LocatedPath) -> int | None:
    status = _status(directory, place)
    return None if status is None else status.st_mode


def _unreadable(place: LocatedPath, error: OSError) -> WrongUse:
    if isinstance(error, FileNotFoundError):
        return WrongUse(f"file {place.given!r} not found; file_read with mode `find` lists the existing files")
    return WrongUse(f"{place.given!r} cannot be read: {error.strerror}")


def _unwritable(place: LocatedPath, error: OSError) -> WrongUse:
    return WrongUse(f"{place.path.name!r} cannot be written: {error.strerror}; it is unchanged")


def _read_only(what: str, name: str) -> WrongUse:
    return WrongUse(f"the {what} {name!r} is read-only; to change it, run chmod with shell first")


def _not_a_file(place: LocatedPath) -> WrongUse:
    return WrongUse(f"{place.given!r} is a FIFO, a device or a socket, not a file")
