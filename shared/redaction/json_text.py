"""The escapes of JSON, behind which secrets are not seen: decoded in a text, and in one that arrives in pieces."""

from __future__ import annotations

import re
from bisect import bisect_right

from shared.redaction import pieces

_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^u])", re.DOTALL)
_CONTROL = r"\\u001[bB](?:\[[0-?]*[ -/]*[@-~]?)?"
"""A color, or another control sequence."""
_NUMBER = re.compile(rf"\\n(?>(?:{_CONTROL})*)(?:\d+(?:\\t|:)|[+<>-])")
"""The number of a line, or the mark of a difference."""
_ESCAPE_OR_CONTROL = re.compile(rf"(?P<control>{_CONTROL})|{_ESCAPE.pattern}", re.DOTALL)
_WITH_NUMBERS = re.compile(rf"(?P<number>{_NUMBER.pattern})|{_ESCAPE_OR_CONTROL.pattern}", re.DOTALL)
_OPEN = re.compile(r"(?:u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?|u[0-9a-fA-F]{0,3})?\Z")
"""What may follow a backslash at the end of a piece, so that the next one decides what they stand for."""
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class Unescaped:
    """A text without white space and without its escapes, as a reader of the JSON sees it."""

    def __init__(self, squeezed: str, *, numbered: bool = False) -> None:
        """`squeezed` has no white space; what stands for white space or a control sequence is left out too.

        `numbered`: numbers and marks of differences at the beginning of its lines are left out.
        """
        parts, end = list[str](), 0
        self.places: list[int] = []
        """For each escape, the index of the first character after it in `text`."""
        self._removed = [0]
        length = 0
        for found in (_WITH_NUMBERS if numbered else _ESCAPE_OR_CONTROL).finditer(squeezed):
            letter = "" if found.lastgroup else pieces.squeezed(_decoded(found))
            parts += squeezed[end : found.start()], letter
            length += found.start() - end + len(letter)
            end = found.end()
            self.places.append(length)
            self._removed.append(end - length)
        self.text = "".join([*parts, squeezed[end:]])

    def place(self, index: int) -> int:
        """Where the character with this index of `text` begins in the escaped text."""
        return index + self._removed[bisect_right(self.places, index)]

    @staticmethod
    def of(text: str) -> str:
        """The text without its escapes, with its white space."""
        return _ESCAPE.sub(_decoded, text)


def line_breaks_behind_escapes(squeezed: str) -> list[int]:
    """Where lines begin with their number or such a mark in a text that was written into JSON."""
    return [found.start() for found in _NUMBER.finditer(squeezed)]


class JsonText:
    """A text in JSON as a reader sees it, in which secrets are found; what is no escape stays as it is."""

    def __init__(self) -> None:
        self._open = ""

    def feed(self, piece: str) -> str:
        """Add a piece, and return the text that is decided."""
        text = self._open + piece
        end = _open_from(text)
        self._open = text[end:]
        return Unescaped.of(text[:end])

    def flush(self) -> str:
        """Return an escape that was not completed."""
        rest, self._open = self._open, ""
        return rest


def _open_from(text: str) -> int:
    position = 0
    while (position := text.find("\\", position)) >= 0:
        if _OPEN.match(text, position + 1):
            return position
        found = _ESCAPE.match(text, position)
        position = found.end() if found else position + 1
    return len(text)


def _decoded(found: re.Match[str]) -> str:
    letters = found.group()[1:]
    if not letters.startswith("u"):
        return _LETTERS.get(letters, letters)
    units = bytes.fromhex(letters.replace("\\u", "").replace("u", ""))
    return units.decode("utf-16-be", "replace")
