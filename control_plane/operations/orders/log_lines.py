"""The lines of a large output by number, without the whole of it in memory: pages of it, and a search."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from control_plane.core.blob_store import Content

CHUNK = 1 << 16
READ_AT_ONCE = CHUNK * 64
"""Bytes that are read at once where all of an output is read; in a bucket, one request."""
LONGEST = 4000
"""Bytes of a line that are shown."""


@dataclass(frozen=True)
class IndexedLine:
    """A line of one output."""

    number: int
    """From 0."""
    text: bytes
    """Its beginning."""
    left_out: int
    """Bytes after that."""

    @classmethod
    def of(cls, number: int, content: Content, begin: int, end: int) -> IndexedLine:
        return cls(number, content[begin : min(end, begin + LONGEST)], max(0, end - begin - LONGEST))


@dataclass(frozen=True)
class LineIndex:
    """Where the lines of an output begin: the number of line feeds before each chunk of it."""

    size: int
    before: tuple[int, ...]
    lines: int
    """A last line without a line feed counts."""

    @classmethod
    def of(cls, content: Content) -> LineIndex:
        """One pass over the output."""
        size, before, count, part = len(content), list[int](), 0, b""
        for start in range(0, size, READ_AT_ONCE):
            part = content[start : start + READ_AT_ONCE]
            for place in range(0, len(part), CHUNK):
                before.append(count)
                count += part.count(b"\n", place, place + CHUNK)
        return cls(size, tuple(before), count if part.endswith(b"\n") or not size else count + 1)

    def page(self, content: Content, first: int, count: int) -> Iterator[IndexedLine]:
        """The lines from `first`, at most `count`. Reads what it gives, and a chunk before it."""
        begin, part, part_at = self._begin_of(content, first), b"", 0
        for number in range(first, min(first + count, self.lines)):
            feed = part.find(b"\n", begin - part_at)
            if feed < 0:
                part_at, part = begin, content[begin : begin + CHUNK]
                feed = part.find(b"\n")
            end = part_at + feed if feed >= 0 else self._feed(content, number + 1)
            yield IndexedLine.of(number, content, begin, end)
            begin = end + 1

    def search(self, content: Content, text: bytes, first: int) -> Iterator[IndexedLine]:
        """The lines from `first` that contain the text; upper and lower case of ASCII letters are the same.

        Nothing before the chunk with `first` is read.
        """
        text, place = text.lower(), self._begin_of(content, first)
        for start in range(place - place % CHUNK, self.size, READ_AT_ONCE):
            # A match may reach into the next part.
            part = content[start : start + READ_AT_ONCE + len(text) - 1]
            lowered, number, counted = part.lower(), self.before[start // CHUNK], 0
            while (found := lowered.find(text, max(0, place - start))) >= 0:
                number, counted = number + part.count(b"\n", counted, found), found
                begin, feed = part.rfind(b"\n", 0, found) + 1, part.find(b"\n", found)
                if begin and feed >= 0:
                    yield IndexedLine.of(number, part, begin, feed)
                    place = start + feed + 1
                else:
                    yield from self.page(content, number, 1)
                    place = self._begin_of(content, number + 1)

    def _begin_of(self, content: Content, line: int) -> int:
        return min(self._feed(content, line) + 1, self.size) if line > 0 and self.size else 0

    def _feed(self, content: Content, number: int) -> int:
        """The place of this line feed, counted from 1; the end of the output if it has fewer."""
        chunk = bisect_right(self.before, number - 1) - 1
        part, place = content[chunk * CHUNK : (chunk + 1) * CHUNK], -1
        for _ in range(number - self.before[chunk]):
            place = part.find(b"\n", place + 1)
            if place < 0:
                return self.size
        return chunk * CHUNK + place
