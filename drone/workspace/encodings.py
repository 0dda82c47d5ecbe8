"""Files whose attribute `working-tree-encoding` git cannot apply: they are delivered as they are.

git ends with an error for a file without the byte order mark that its encoding requires, for an encoding that it does
not know, and for an attribute that names none. The work would be lost over it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO

from drone.sandbox.entering import descend
from drone.workspace.git import Git, GitFailed

_ATTRIBUTE = "working-tree-encoding"
_NAMES_NONE = "true/false are no valid working-tree-encodings"
_CANNOT_APPLY = ("if encoded as", "failed to encode '", "and back is not the same")
_INSIDE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def reading_files(git: Git, *arguments: str, stdin: bytes = b"") -> bytes:
    """Like `git.raw`, for commands that read or write files of the work tree.

    If an attribute names no encoding, encodings are ignored from then on: git would refuse every file that has it.
    """
    try:
        return git.raw(*arguments, stdin=stdin)
    except GitFailed as failure:
        if _NAMES_NONE not in failure.message or git.directory is None:
            raise
    attributes = git.directory / "info" / "attributes"
    attributes.parent.mkdir(exist_ok=True)
    attributes.write_text(f"* !{_ATTRIBUTE}\n")
    return git.raw(*arguments, stdin=stdin)


def cannot_encode(failure: GitFailed) -> bool:
    """Whether git ended because of a file's encoding."""
    return any(words in failure.message for words in _CANNOT_APPLY)


def encodings_of(git: Git, paths: Sequence[bytes]) -> Mapping[bytes, bytes]:
    """The paths that have the attribute, with its value."""
    listing = git.raw("check-attr", "-z", "--stdin", _ATTRIBUTE, stdin=b"".join(path + b"\0" for path in paths))
    fields = listing.split(b"\0")
    return {path: value for path, value in zip(fields[::3], fields[2::3], strict=False) if value != b"unspecified"}


def add_unencoded(git: Git, path: bytes) -> None:
    """Add a file to the index with the bytes that it has.

    Raises GitFailed or OSError if it is gone, or no plain file inside the work tree.
    """
    with inside(git, path) as file:
        mode = mode_of(file)
        blob = git.text("hash-object", "-w", "--stdin", stdin=file)
    entry = f"{mode} {blob} 0\t".encode() + path + b"\0"
    git.text("update-index", "-z", "--replace", "--index-info", stdin=entry)


@contextmanager
def inside(git: Git, path: bytes) -> Iterator[IO[bytes]]:
    """The file, each part of its path opened in the one before it: a link could lead to the owner's files.

    Raises OSError if it is gone, or no plain file inside the work tree.
    """
    if git.work_tree is None:
        raise ValueError("a work tree is required")
    *directories, name = path.split(b"/")
    where = descend(git.work_tree, list(map(os.fsdecode, directories)))
    try:
        opened = os.open(name, _INSIDE, dir_fd=where)
    finally:
        os.close(where)
    with os.fdopen(opened, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError(f"{os.fsdecode(path)} is not a file")
        yield file


def mode_of(file: IO[bytes]) -> str:
    """The mode that git stores for an open file."""
    return "100755" if os.fstat(file.fileno()).st_mode & stat.S_IXUSR else "100644"
