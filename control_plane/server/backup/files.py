"""Files of a backup: written with their size and SHA-256 counted, and compared with these when they are read."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256 as new_hash
from pathlib import Path
from typing import BinaryIO, cast

from control_plane.server.backup.manifest import BackupPart, damaged

CHUNK = 1 << 20


class CountedFile:
    """A file that is being written, private to its owner; it counts what passes."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self._digest = new_hash()
        self._size = 0

    def write(self, content: bytes) -> int:
        self._digest.update(content)
        self._size += len(content)
        return self._file.write(content)

    def flush(self) -> None:
        self._file.flush()

    def close(self, *, durable: bool) -> BackupPart:
        """Close it, on disk if it is to be `durable`; returns its size and digest."""
        self._file.flush()
        if durable:
            os.fsync(self._file.fileno())
        self._file.close()
        return BackupPart(size=self._size, sha256=self._digest.hexdigest())

    def abandon(self) -> None:
        """Close what failed."""
        with suppress(OSError):
            self._file.close()


@contextmanager
def counted(path: Path, found: dict[str, BackupPart], *, durable: bool = True) -> Iterator[CountedFile]:
    """Write a file of the backup; `found` gets it by its name when the block ends."""
    file = CountedFile(path)
    try:
        yield file
        # A full disk may show only when it is flushed.
        found[path.name] = file.close(durable=durable)
    except BaseException:
        file.abandon()
        raise


@contextmanager
def compressed(file: CountedFile) -> Iterator[gzip.GzipFile]:
    """A writer of compressed content into `file`."""
    with gzip.GzipFile(fileobj=cast("BinaryIO", file), mode="wb", compresslevel=3, mtime=0) as writer:
        yield writer


@contextmanager
def lines_of(path: Path) -> Iterator[Iterator[bytes]]:
    """The lines of a compressed file."""
    with gzip.open(path, "rb") as lines:
        yield iter(lines)


def compare(backup: Path, name: Path | str, expected: BackupPart) -> None:
    """Return if the file has the size and the digest that were recorded. Raises Invalid (`E-BACKUP-DAMAGED`)."""
    digest, size = new_hash(), 0
    try:
        with (backup / name).open("rb") as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
                size += len(chunk)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        raise damaged(backup, f"{name} {'is missing' if missing else f'cannot be read: {error.strerror}'}") from error
    if size != expected.size:
        raise damaged(backup, f"{name} has {size:,} bytes instead of {expected.size:,}")
    if digest.hexdigest() != expected.sha256:
        raise damaged(backup, f"{name} was changed: its SHA-256 is another one")
