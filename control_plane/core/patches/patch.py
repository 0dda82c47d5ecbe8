"""Finds the files of a patch that git wrote. A patch comes from a drone, so it may be of any size and contain anything.

Only the headers are read here; the lines of a file are read when they are shown (`hunks`).
unidiff, the usual library, reads all lines at once, leaves quoted paths as they are, and knows no modes.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from typing import Literal

Kind = Literal["added", "deleted", "modified", "renamed", "copied"]
SYMLINK, SUBMODULE = "120000", "160000"
_FILE = re.compile(rb"(?m)^diff --git ")
_BODY = re.compile(rb"(?m)^(?:@@ |GIT binary patch|Binary files )")
_CODE = re.compile(rb"(?m)^[ +\-]")
_CODE_WITH_CR = re.compile(rb"(?m)^[ +\-][^\n]*\r$")
_MODE = re.compile(rb"[0-7]{6}")
_LONGEST_HEAD = 64_000


@dataclass(frozen=True)
class FilePatch:
    """One file of a patch: what its header says, and where its lines are."""

    index: int
    """Its place in the patch."""
    path: str
    old_path: str
    """Another one only if the file was renamed or copied."""
    kind: Kind
    old_mode: str
    new_mode: str
    """Empty if the patch does not say."""
    similarity: str
    """`95%`, of a renamed or copied file."""
    patch: bytes = field(repr=False)
    """The whole patch."""
    start: int
    body_start: int
    """Where the first hunk, or the binary data, begins."""
    end: int

    @property
    def is_binary(self) -> bool:
        return self.patch.startswith((b"GIT binary", b"Binary files"), self.body_start, self.end)

    @cached_property
    def plus(self) -> int:
        return 0 if self.is_binary else self.patch.count(b"\n+", self.body_start, self.end)

    @cached_property
    def minus(self) -> int:
        return 0 if self.is_binary else self.patch.count(b"\n-", self.body_start, self.end)

    @cached_property
    def digest(self) -> str:
        """The same for the same change of the same file."""
        return sha256(memoryview(self.patch)[self.start : self.end]).hexdigest()[:12]

    @cached_property
    def sizes(self) -> BinarySizes:
        return binary_sizes(self.patch[self.body_start : self.end]) if self.is_binary else BinarySizes()

    @cached_property
    def has_crlf(self) -> bool:
        """Whether each of its lines ends with CR LF."""
        if self.is_binary or self.patch.find(b"\r\n", self.body_start, self.end) < 0:
            return False
        with_cr, all_lines = (_count(each, self) for each in (_CODE_WITH_CR, _CODE))
        return with_cr == all_lines

    @property
    def mode(self) -> str:
        return self.new_mode or self.old_mode

    @property
    def changed_mode(self) -> bool:
        return bool(self.old_mode and self.new_mode) and self.old_mode != self.new_mode


def read_patch(patch: bytes) -> list[FilePatch]:
    """The files, in the order of the patch."""
    edges = [*(found.start() for found in _FILE.finditer(patch)), len(patch)]
    return [_file(index, patch, start, end) for index, (start, end) in enumerate(pairwise(edges))]


def _file(index: int, patch: bytes, start: int, end: int) -> FilePatch:
    found = _BODY.search(patch, start, min(end, start + _LONGEST_HEAD))
    body_start = found.start() if found else end
    first, *lines = patch[start : min(body_start, start + _LONGEST_HEAD)].rstrip(b"\n").split(b"\n")
    said = dict(_said(lines))
    old, new = _paths_of(first.removeprefix(b"diff --git "))
    old = _path(said, (("rename_from", b""), ("copy_from", b""), ("old_name", b"a/")), old)
    new = _path(said, (("rename_to", b""), ("copy_to", b""), ("new_name", b"b/")), new)
    kind = _kind(said)
    indexed = _mode(said.get("index", b"").rpartition(b" ")[2])
    return FilePatch(
        index=index,
        path=old if kind == "deleted" else new,
        old_path=old if kind in {"renamed", "copied"} else new,
        kind=kind,
        old_mode=_mode(said.get("old_mode", said.get("deleted_mode", b""))) or ("" if kind == "added" else indexed),
        new_mode=_mode(said.get("new_mode", said.get("added_mode", b""))) or ("" if kind == "deleted" else indexed),
        similarity=said.get("similarity", b"").decode("ascii", "replace")[:4],
        patch=patch,
        start=start,
        body_start=body_start,
        end=end,
    )


_SAID: Mapping[bytes, str] = {
    b"old mode ": "old_mode",
    b"new mode ": "new_mode",
    b"deleted file mode ": "deleted_mode",
    b"new file mode ": "added_mode",
    b"rename from ": "rename_from",
    b"rename to ": "rename_to",
    b"copy from ": "copy_from",
    b"copy to ": "copy_to",
    b"similarity index ": "similarity",
    b"index ": "index",
    b"--- ": "old_name",
    b"+++ ": "new_name",
}


def _said(lines: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
    """What git's extended header says, by name."""
    for line in lines:
        for prefix, name in _SAID.items():
            if line.startswith(prefix):
                yield name, line.removeprefix(prefix)


def _path(said: Mapping[str, bytes], names: Sequence[tuple[str, bytes]], otherwise: str) -> str:
    """The path in the first of these lines; `/dev/null` names none."""
    found = (_path_of(said[name], prefix) for name, prefix in names if name in said)
    return next((path for path in found if path), otherwise)


def _kind(said: Mapping[str, bytes]) -> Kind:
    if "added_mode" in said:
        return "added"
    if "deleted_mode" in said:
        return "deleted"
    if "rename_to" in said:
        return "renamed"
    return "copied" if "copy_to" in said else "modified"


def _mode(written: bytes) -> str:
    return written.decode() if _MODE.fullmatch(written) else ""


def _count(pattern: re.Pattern[bytes], file: FilePatch) -> int:
    return sum(1 for _ in pattern.finditer(file.patch, file.body_start, file.end))


# --- paths as git writes them in a patch: `"a/na\303\257ve"` for `naïve` --------------------------

_ESCAPED = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTERS = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_NOTHING = b"/dev/null"


def _path_of(written: bytes, side: bytes = b"") -> str | None:
    """The path, without the prefix `side` (`a/`, `b/`); None for `/dev/null`.

    Bytes that are not UTF-8 become U+FFFD: a path from a drone is shown, never opened.
    """
    if quoted := _QUOTED.match(written):
        written = _unquoted(quoted[1])
    else:
        # After a name with spaces, git writes a tab.
        written = written.removesuffix(b"\t")
        if written == _NOTHING:
            return None
    return written.removeprefix(side).decode("utf-8", "replace")


def _paths_of(names: bytes) -> tuple[str, str]:
    """Both paths of `a/PATH b/PATH`; only without quotes and renames can they be told apart with certainty."""
    found = _QUOTED.match(names)
    if found:
        rest = names[found.end() :].lstrip(b" ")
        return _path_of(found[0], b"a/") or "", _path_of(rest, b"b/") or ""
    if names.endswith(b'"') and (start := names.find(b' "')) > 0:
        return _path_of(names[:start], b"a/") or "", _path_of(names[start + 1 :], b"b/") or ""
    middle = len(names) // 2
    if names[middle : middle + 1] == b" " and names[2:middle] == names[middle + 3 :]:
        return _path_of(names[:middle], b"a/") or "", _path_of(names[middle + 1 :], b"b/") or ""
    old, _, new = names.partition(b" b/")
    return _path_of(old, b"a/") or "", _path_of(new) or ""


def _unquoted(text: bytes) -> bytes:
    """The bytes between the quotes, with git's escapes replaced."""
    return _ESCAPED.sub(lambda found: _escaped(found[1]), text)


def _escaped(code: bytes) -> bytes:
    return bytes([int(code, 8) & 0xFF]) if len(code) > 1 else _LETTERS.get(code, code)


# --- sizes of binary files, from the data that git puts into a patch ------------------------------

_PART = re.compile(rb"(?m)^(literal|delta) (\d{1,12})\n([^\n]*)")
_LENGTHS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_HEAD = 40
"""Bytes of a delta in which both sizes are found."""


@dataclass(frozen=True)
class BinarySizes:
    """Bytes before and after; None if the patch does not say."""

    old: int | None = None
    new: int | None = None


def binary_sizes(body: bytes) -> BinarySizes:
    """The sizes in the body of a `GIT binary patch`: the way forward, then the way back."""
    forward, backward = [*_sizes(body), None, None][:2]
    if forward is None:
        return BinarySizes()
    old, new = forward
    if old is None and backward is not None:
        old = backward[1]
    return BinarySizes(old, new)


def _sizes(body: bytes) -> Iterator[tuple[int | None, int | None]]:
    """Of each part: the size that it starts from, if it is a delta, and the size that it leads to."""
    for _, found in zip(range(2), _PART.finditer(body), strict=False):
        yield (None, int(found[2])) if found[1] == b"literal" else _delta_sizes(found[3])


def _delta_sizes(line: bytes) -> tuple[int | None, int | None]:
    """A delta begins with both sizes, in 7 bits per byte, after compression and base 85."""
    try:
        length = _LENGTHS.index(line[:1]) + 1
        head = zlib.decompressobj().decompress(base64.b85decode(line[1:])[:length], _HEAD)
        old, rest = _number(head)
        new, _ = _number(rest)
    except (ValueError, IndexError, zlib.error):
        return None, None
    return old, new


def _number(data: bytes) -> tuple[int, bytes]:
    value = 0
    for place, byte in enumerate(data):
        value |= (byte & 0x7F) << (7 * place)
        if not byte & 0x80:
            return value, data[place + 1 :]
    raise ValueError("the number does not end")
