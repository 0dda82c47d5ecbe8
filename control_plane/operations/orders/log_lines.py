"""The lines of a large output by number, without the whole of it in memory: pages of it, and a search."""

from __future__ import annotations

import mmap
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CHUNK = 1 << 16
SEARCH_CHUNK = 1 << 22
LONGEST = 4000
"""Bytes of a line that are shown."""
Source = bytes | mmap.mmap
"""A short output is in the step itself, a long one in a file."""


@dataclass(frozen=True)
class LineIndex:
    """Where the lines of an output begin: the number of line feeds before each chunk of it."""

    size: int
    before: tuple[int, ...]
    lines: int
    """A last line without a line feed counts."""

    @classmethod
    def of(cls, source: Source) -> LineIndex:
        """One pass over the output."""
        size, before, count = len(source), [], 0
        for start in range(0, size, CHUNK):
            before.append(count)
            count += source[start : start + CHUNK].count(b"\n")
        ends = size == 0 or source[size - 1 : size] == b"\n"
        return cls(size, tuple(before), count if ends else count + 1)

    def offset_of(self, source: Source, line: int) -> int:
        """Where a line begins, counted from 0."""
        if line <= 0 or not self.before:
            return 0
        start = (bisect_right(self.before, line - 1) - 1) * CHUNK
        at = start
        for _ in range(line - self.before[start // CHUNK]):
            at = source.find(b"\n", at) + 1
        return at

    def line_at(self, source: Source, offset: int) -> int:
        """The number of the line that contains this place, counted from 0."""
        start = offset // CHUNK
        return self.before[start] + source[start * CHUNK : offset].count(b"\n")

    def page(self, source: Source, first: int, count: int) -> Iterator[tuple[bytes, int]]:
        """The lines from `first`, at most `count`: the beginning of each, and how many bytes of it are left out."""
        at = self.offset_of(source, first)
        for _ in range(min(count, self.lines - first)):
            end = source.find(b"\n", at)
            end = self.size if end < 0 else end
            yield source[at : min(end, at + LONGEST)], max(0, end - at - LONGEST)
            at = end + 1


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """The content of a file, read from the disk as it is used."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield content


def found_in(source: Source, wanted: bytes) -> Iterator[int]:
    """The place of the first match in each line that has one; upper and lower case of ASCII letters are the same."""
    wanted, size, skip_to = wanted.lower(), len(source), 0
    for start in range(0, size, SEARCH_CHUNK):
        # A match may reach into the next chunk.
        part = source[start : start + SEARCH_CHUNK + len(wanted) - 1].lower()
        at = part.find(wanted, max(0, skip_to - start))
        while at >= 0:
            yield start + at
            end = source.find(b"\n", start + at)
            skip_to = size if end < 0 else end + 1
            at = part.find(wanted, skip_to - start) if skip_to - start < len(part) else -1
