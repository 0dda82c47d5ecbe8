"""Files that Git LFS tracks: the repository has pointers, and the drone's git neither fetches nor stores their content.

Its filter is a program that a repository can point to any server, so it is not run. Content that the agent fetched
itself is no change; content that it made is delivered as a plain file, for which users get a note, also if the agent
committed a pointer to it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Set
from functools import cached_property, partial
from typing import IO

from drone.workspace.encodings import inside
from drone.workspace.git import Git

_TRACKED = ":(attr:filter=lfs)"
_LISTED = re.compile(rb"(?<![^\0])\d{6} ([0-9a-f]{40,64}) \d\t([^\0]+)")
_IN_TREE = re.compile(rb"(?<![^\0])\d{6} blob ([0-9a-f]{40,64})\t")
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:.*\n)*?oid sha256:([0-9a-f]{64})\nsize (\d+)\n"
)
_LARGEST_POINTER = 1024
"""Bytes, as the specification says."""
_LARGEST_CONTENT = 2 * 1000**3
"""Bytes; more would take too long to compare."""
_PORTION = 1 << 20
_NO_CONTENT = "a Git LFS pointer; the run did not have the file's content"
_PLAIN = (
    "delivered with its content instead of a Git LFS pointer; to convert it: git lfs migrate import --no-rewrite FILE"
)
_Signature = tuple[int, int, int]


class LfsFiles:
    """The files of the index that Git LFS tracks, compared with the work tree."""

    def __init__(self, git: Git, fetched: Iterable[str | None]) -> None:
        """A pointer that none of the commits `fetched` has may be the agent's: then no server has its content."""
        self._git = git
        self._commits = fetched
        listing = git.raw("ls-files", "-z", "--stage", "--", _TRACKED)
        self._blobs = {path: blob.decode() for blob, path in _LISTED.findall(listing)}
        self._seen: dict[bytes, tuple[_Signature, bool]] = {}

    def is_unchanged(self, path: bytes) -> bool:
        """Whether a file has the content to which the index has a pointer that was fetched.

        Known content is not read again.
        """
        if path not in self._blobs:
            return False
        try:
            with inside(self._git, path) as file:
                status = os.fstat(file.fileno())
                signature = (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
                if path not in self._seen or self._seen[path][0] != signature:
                    self._seen[path] = signature, self._has_content(path, file, status.st_size)
        except OSError:
            return False
        return self._seen[path][1]

    def _has_content(self, path: bytes, file: IO[bytes], size: int) -> bool:
        blob = self._blobs[path]
        found = self._pointer(blob)
        if found is None or int(found[2]) != size or size > _LARGEST_CONTENT or blob not in self._fetched:
            return False
        digest = hashlib.sha256()
        for portion in iter(partial(file.read, _PORTION), b""):
            digest.update(portion)
        return digest.hexdigest().encode() == found[1]

    def _pointer(self, blob: str) -> re.Match[bytes] | None:
        return _POINTER.match(self._git.raw("cat-file", "blob", blob)[:_LARGEST_POINTER])

    @cached_property
    def _fetched(self) -> Set[str]:
        listings = (self._git.raw("ls-tree", "-r", "-z", commit) for commit in self._commits if commit)
        return {blob.decode() for listing in listings for blob in _IN_TREE.findall(listing)}

    def remarks(self, base_tree: str) -> Mapping[bytes, str]:
        """What users should know of files, for an index that was staged: no content, or a plain file since the base."""
        pointers = {path for path in self._blobs if self._is_pointer(path)}
        if len(pointers) == len(self._blobs):
            return dict.fromkeys(pointers, _NO_CONTENT)
        options = ("--cached", "-z", "--name-only", "--no-renames", "--diff-filter=AMT")
        changed = self._git.raw("diff-index", *options, base_tree, "--", _TRACKED).split(b"\0")
        blobs = {path: self._blobs[path] for path in changed if path and path not in pointers}
        small = {blob for blob, size in _sizes(self._git, blobs.values()).items() if size <= _LARGEST_POINTER}
        plain = {path for path, blob in blobs.items() if blob not in small or self._pointer(blob) is None}
        return dict.fromkeys(pointers, _NO_CONTENT) | dict.fromkeys(plain, _PLAIN)

    def _is_pointer(self, path: bytes) -> bool:
        try:
            with inside(self._git, path) as file:
                return _POINTER.match(file.read(_LARGEST_POINTER)) is not None
        except OSError:
            return False


def _sizes(git: Git, blobs: Iterable[str]) -> Mapping[str, int]:
    """The size in bytes of each of the blobs that git has."""
    listing = git.text("cat-file", "--batch-check", stdin="".join(f"{blob}\n" for blob in blobs).encode())
    found = (line.split() for line in listing.splitlines())
    return {name: int(size[0]) for name, kind, *size in found if kind == "blob"}
