"""Writes and reads git bundles of bounded size; each object that is read is checked, and nothing is altered."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from drone.workspace.git import Git, GitFailed
from shared.blobs import MAX_BYTES

_LONGEST_HEADER = 1024 * 1024
_HEADER_LINE = re.compile(rb"# v[23] git bundle|@object-format=\w+|-?[0-9a-f]{40}(?:[0-9a-f]{24})?( .*)?")


class BundleTooLarge(Exception):
    """The bundle would exceed its size limit."""


def write_bundle(git: Git, ref: str, published: str | None, largest: int) -> bytes:
    """Return a bundle with `ref` and everything that it needs and that is not reachable from `published`.

    Raises BundleTooLarge as soon as it exceeds `largest` bytes.
    """
    path = (git.directory or Path("/")) / "written.bundle"
    growing = path.with_name(f"{path.name}.lock")

    def check() -> None:
        if _size(growing) > largest:
            raise BundleTooLarge

    growing.unlink(missing_ok=True)
    try:
        known = [f"^{published}"] if published else []
        git.checking(check).text("bundle", "create", "-q", str(path), ref, *known)
        if _size(path) > largest:
            raise BundleTooLarge
        return path.read_bytes()
    finally:
        path.unlink(missing_ok=True)
        growing.unlink(missing_ok=True)


def read_bundle(git: Git, bundle: Path) -> None:
    """Add the objects of a bundle to git's directory; no ref is created.

    Not done by `git fetch`, which checks the content of a bundle only since git 2.46. Raises GitFailed if it is not a
    bundle, is damaged, holds objects that git's fsck rejects, or builds on objects that are not here.
    """
    with _opened(bundle) as file:
        _skip_header(file)
        git.text("index-pack", "--stdin", "--fix-thin", "--strict", stdin=file)


@contextmanager
def _opened(bundle: Path) -> Iterator[IO[bytes]]:
    """The file itself and no other: its writer may have put a link, a FIFO or something huge there."""
    try:
        descriptor = os.open(bundle, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise GitFailed("bundle", None, f"the bundle cannot be opened: {error.strerror}") from error
    # Without a buffer: git continues reading where the header ended.
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            raise GitFailed("bundle", None, "the bundle is too large or not a regular file")
        yield file


def _skip_header(file: IO[bytes]) -> None:
    start = file.read(_LONGEST_HEADER)
    header, end, _ = start.partition(b"\n\n")
    lines = header.split(b"\n")
    if not end or not lines[0].startswith(b"# v") or not all(map(_HEADER_LINE.fullmatch, lines)):
        raise GitFailed("bundle", None, "the bundle has an invalid header")
    file.seek(len(header) + len(end))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
