"""A text without what may stand between the pieces of a secret: white space, NUL, zero-width characters, colors."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate

_AT_ONCE = 1 << 15
"""Characters that are split at once: the words of a long text would not fit into the processor's cache."""
_INVISIBLE = "\0\N{SYMBOL FOR NULL}\N{REPLACEMENT CHARACTER}\u00ad\u200b-\u200f\u2060-\u2064\ufeff"
_HIDDEN = re.compile(f"[{_INVISIBLE}]")
_CONTROL = r"\x1b(?:\[[0-?]*[ -/]*[@-~]?)?"
"""A color, or another control sequence, of which a reader sees nothing; also one that is not complete yet."""
_CONTROLS = re.compile(_CONTROL)
_BETWEEN = re.compile(rf"(?:{_CONTROL}|[\s{_INVISIBLE}])+")
_BREAKS = re.compile(rf"\n *+(?:{_CONTROL} *+)*+(?:\d++[\t:]|[+<>-])"), re.compile(r"\\(?=\s)")
"""What tools put before a line of a file or a difference, and what a shell wants at the end of one that continues."""
_BETWEEN_LINES = re.compile(rf"(?:{_BREAKS[0].pattern}|{_BREAKS[1].pattern}|{_CONTROL}|[\s{_INVISIBLE}])+")


def squeezed(text: str) -> str:
    """The text without these characters."""
    if "\x1b" in text:
        text = _CONTROLS.sub("", text)
    if len(text) <= _AT_ONCE:
        words = "".join(text.split())
    else:
        words = "".join(["".join(text[at : at + _AT_ONCE].split()) for at in range(0, len(text), _AT_ONCE)])
    return words if words.isascii() and "\0" not in words else _HIDDEN.sub("", words)


def line_breaks(text: str) -> list[int]:
    """Where lines of the text begin with their number or the mark of a difference, or end with a backslash."""
    if "\n" not in text and "\\" not in text:
        return []
    # Each on its own: `re` finds a literal beginning fast, and no alternative.
    return sorted(found.start() for pattern in _BREAKS for found in pattern.finditer(text))


def joined_lines(text: str) -> str:
    """The squeezed text without the numbers and marks of its lines and the backslashes at their ends."""
    return squeezed(_BREAKS[1].sub("", _BREAKS[0].sub("\n", text)))


def stripped(text: str) -> str:
    """The text without these characters at both ends."""
    start = found.end() if (found := _BETWEEN.match(text)) else 0
    *_, last = [None, *_BETWEEN.finditer(text)]
    return text[start : last.start() if last and last.end() == len(text) else len(text)]


class GapMap:
    """Where the characters of a squeezed text are in the text; `with_breaks`: of one whose lines are joined."""

    def __init__(self, text: str, *, with_breaks: bool = False) -> None:
        gaps = [found.span() for found in (_BETWEEN_LINES if with_breaks else _BETWEEN).finditer(text)]
        self._removed = [0, *accumulate(end - start for start, end in gaps)]
        self._at = [start - removed for (start, _), removed in zip(gaps, self._removed, strict=False)]
        """For each gap, the index of the first squeezed character after it."""

    def place(self, index: int) -> int:
        """The position of the squeezed character with this index."""
        return index + self._removed[bisect_right(self._at, index)]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The range from the first to the last of these squeezed characters."""
        return self.place(start), self.place(end - 1) + 1
