"""The lines of one file of a patch, read as far as they are shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from control_plane.core.patches.patch import FilePatch

Sign = Literal["same", "add", "del", "hunk", "note"]
SIGNS: dict[bytes, Sign] = {b"+": "add", b"-": "del", b" ": "same", b"": "same", b"\\": "note"}
"""Some programs strip the blank of an empty line."""
_HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)", re.DOTALL)


@dataclass(frozen=True)
class Line:
    """One line of a file's part of a patch."""

    sign: Sign
    """`hunk`: the beginning of a hunk; `note`: the line before it has no newline at its end."""
    raw: bytes
    """Without its sign; of a hunk, what git shows as its place (`def refund():`)."""
    old: int | None = None
    new: int | None = None
    """Numbers on both sides; of a hunk, its first lines."""
    skipped: int = 0
    """Of a hunk: unchanged lines before it that the patch leaves out."""

    @property
    def text(self) -> str:
        return self.raw.decode("utf-8", "replace")


def lines_of(file: FilePatch) -> Iterator[Line]:
    """All lines, hunk after hunk.

    A hunk has exactly the lines that it announces: what follows is no part of the file, and git would ignore it.
    """
    if file.is_binary:
        return
    raw_lines = _RawLines(file)
    old_next = 1
    for raw in raw_lines:
        if not (found := _HUNK.match(raw)):
            continue
        old, old_left, new, new_left = (1 if each is None else int(each) for each in found.groups()[:4])
        yield Line("hunk", found[5], old, new, skipped=max(0, old - old_next))
        yield from _hunk(raw_lines, _Counts(old, old_left, new, new_left))
        old_next = old + old_left


@dataclass
class _Counts:
    """The next numbers on both sides, and how many lines of the hunk are left on each."""

    old: int
    old_left: int
    new: int
    new_left: int

    @property
    def done(self) -> bool:
        return self.old_left <= 0 and self.new_left <= 0

    def take(self, sign: Sign, raw: bytes) -> Line:
        on_old, on_new = sign in {"same", "del"}, sign in {"same", "add"}
        line = Line(sign, raw, self.old if on_old else None, self.new if on_new else None)
        self.old, self.old_left = self.old + on_old, self.old_left - on_old
        self.new, self.new_left = self.new + on_new, self.new_left - on_new
        return line


def _hunk(raw_lines: _RawLines, counts: _Counts) -> Iterator[Line]:
    for raw in raw_lines:
        sign = SIGNS.get(raw[:1])
        if sign is None or (counts.done and sign != "note"):
            # The beginning of the next hunk, or of anything else.
            raw_lines.put_back(raw)
            return
        yield counts.take(sign, raw[1:])


class _RawLines:
    """The lines of a file's body, without copying the rest; one may be put back."""

    def __init__(self, file: FilePatch) -> None:
        self._patch, self._at, self._end = file.patch, file.body_start, file.end
        self._back: bytes | None = None

    def __iter__(self) -> _RawLines:
        return self

    def __next__(self) -> bytes:
        if (back := self._back) is not None:
            self._back = None
            return back
        if self._at >= self._end:
            raise StopIteration
        end = self._patch.find(b"\n", self._at, self._end)
        end = self._end if end < 0 else end
        line = self._patch[self._at : end]
        self._at = end + 1
        return line

    def put_back(self, line: bytes) -> None:
        self._back = line
