"""A text without what may stand between the pieces of a secret: white space, NUL, zero-width characters."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate

_INVISIBLE = "\0\N{SYMBOL FOR NULL}\N{REPLACEMENT CHARACTER}\u00ad\u200b-\u200f\u2060-\u2064\ufeff"
_HIDDEN = re.compile(f"[{_INVISIBLE}]")
_BETWEEN = re.compile(rf"[\s{_INVISIBLE}]+")
_LINE_NUMBER = re.compile(r"\n *\d+[\t:]")
"""As tools put it before each line of a file."""
_BETWEEN_NUMBERED = re.compile(rf"(?:{_LINE_NUMBER.pattern}|[\s{_INVISIBLE}])+")


def squeezed(text: str) -> str:
    """The text without these characters."""
    words = "".join(text.split())
    return words if words.isascii() and "\0" not in words else _HIDDEN.sub("", words)


def has_line_numbers(text: str) -> bool:
    """Whether lines of the text begin with their numbers."""
    return _LINE_NUMBER.search(text) is not None


def without_line_numbers(text: str) -> str:
    """The squeezed text without the numbers of its lines."""
    return _BETWEEN_NUMBERED.sub("", text)


def stripped(text: str) -> str:
    """The text without these characters at both ends."""
    start = found.end() if (found := _BETWEEN.match(text)) else 0
    *_, last = [None, *_BETWEEN.finditer(text)]
    return text[start : last.start() if last and last.end() == len(text) else len(text)]


class GapMap:
    """Where the characters of a squeezed text are in the text; `numbered`: of one without the numbers of its lines."""

    def __init__(self, text: str, *, numbered: bool = False) -> None:
        gaps = [found.span() for found in (_BETWEEN_NUMBERED if numbered else _BETWEEN).finditer(text)]
        self._removed = [0, *accumulate(end - start for start, end in gaps)]
        self._at = [start - removed for (start, _), removed in zip(gaps, self._removed, strict=False)]
        """For each gap, the index of the first squeezed character after it."""

    def place(self, index: int) -> int:
        """The position of the squeezed character with this index."""
        return index + self._removed[bisect_right(self._at, index)]
