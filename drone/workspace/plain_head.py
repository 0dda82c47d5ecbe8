"""Reads which commit a workspace's HEAD names, as text: no git, no process, and nothing of it is interpreted."""

from __future__ import annotations

import os
import re
import stat
from contextlib import ExitStack
from pathlib import Path

_COMMIT = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?\n")
_BRANCH = re.compile(rb"ref: (refs/heads/[A-Za-z0-9._/-]{1,200})\n")
_LARGEST = 1000
"""Bytes; HEAD and a ref are far smaller."""
_LARGEST_LIST = 1 << 20
"""Bytes of packed refs, some ten thousand of them."""
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DIRECTORY = _FILE | os.O_DIRECTORY


def plain_head(work: Path) -> str | None:
    """The commit, or None where only git could tell: a linked `.git`, very many packed refs, anything unusual.

    The agent can write to `.git`: no link in it is followed, and what is found is only compared, never opened.
    """
    try:
        head = _content(work, [".git", "HEAD"])
        branch = _BRANCH.fullmatch(head)
        if branch is not None:
            head = _branch(work, branch[1])
    except OSError:
        return None
    return head.strip().decode() if _COMMIT.fullmatch(head) else None


def _branch(work: Path, name: bytes) -> bytes:
    """The content of the branch's own file; without one, its line among the packed refs, as after a clone."""
    try:
        return _content(work, [".git", *name.decode().split("/")])
    except FileNotFoundError:
        packed = _content(work, [".git", "packed-refs"], _LARGEST_LIST)
        found = re.search(rb"^([0-9a-f]+) " + re.escape(name) + rb"$", packed, re.MULTILINE)
        return found[1] + b"\n" if found and len(packed) < _LARGEST_LIST else b""


def _content(work: Path, parts: list[str], largest: int = _LARGEST) -> bytes:
    """The content of a regular file below `work`, each part of its path opened in the one before it."""
    if {"", ".", ".."} & set(parts):
        return b""
    with ExitStack() as opened:
        where = os.open(work, _DIRECTORY)
        opened.callback(os.close, where)
        for part in parts[:-1]:
            where = os.open(part, _DIRECTORY, dir_fd=where)
            opened.callback(os.close, where)
        file = os.open(parts[-1], _FILE, dir_fd=where)
        opened.callback(os.close, file)
        return os.read(file, largest) if stat.S_ISREG(os.fstat(file).st_mode) else b""
