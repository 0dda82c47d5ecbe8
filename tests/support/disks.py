"""Disks that a test can fill and clear: a small file system in memory, mounted for one test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

MEGABYTES = 180


class Disk:
    """A separate file system below `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    @property
    def free(self) -> int:
        stat = os.statvfs(self.path)
        return stat.f_bavail * stat.f_frsize

    def fill(self, leave: int = 0) -> None:
        """Use all of its space except `leave` bytes."""
        file = os.open(self._ballast, os.O_WRONLY | os.O_CREAT)
        try:
            # Another process may write meanwhile, so a failed allocation is retried with the space that is free then.
            size = os.fstat(file).st_size
            while (rest := self.free - leave) > 0:
                with suppress(OSError):
                    os.posix_fallocate(file, size, rest)
                size = os.fstat(file).st_size
        finally:
            os.close(file)

    def clear(self) -> None:
        """Free the space again."""
        self._ballast.unlink(missing_ok=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk of 180 MB. Skips if this user is not allowed to mount."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs", str(path)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("a disk of its own needs the right to mount one")
    try:
        yield Disk(path)
    finally:
        # Lazy: a process that a failed test left behind must not keep the mount.
        subprocess.run(["umount", "-l", str(path)], check=True)
