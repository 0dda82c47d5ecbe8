"""The ways in which a text is read for secrets: without white space, line numbers, or the escapes of JSON."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from shared.redaction.pieces import GapMap, joined_lines, line_breaks, squeezed
from shared.redaction.spans import Span

_ESCAPES_AT_MOST = 2
"""How often a text in JSON may have been written into JSON again."""
Places = Callable[[int, int], Span]


@dataclass(frozen=True)
class Reading:
    """A text as one kind of reader sees it, without white space."""

    text: str
    span: Places
    """Where a range of `text` is in the text itself."""
    written: Callable[[str], str] = str
    """A part of the text itself as this reader sees it, with its white space."""
    changed: Sequence[int] | None = None
    """The only places at which something is new to those who know the plainer readings; None: everything is."""

    def parts(self, reach: int) -> Iterator[Span]:
        """Ranges of `text` that contain everything new of up to `reach` characters."""
        if self.changed is None:
            return iter([(0, len(self.text))])
        return around(self.changed, reach, len(self.text))


def readings(text: str, reach: int) -> Iterator[Reading]:
    """All readings of the text, the plainest first. A secret has up to `reach` characters, with what divides it.

    Each costs about as much as it differs from the others, and nothing where it is the same.
    """
    plain = plain_reading(text)
    yield plain
    for start, end in around(line_breaks(text), reach, len(text)):
        part = _Part(text[start:end], start, with_breaks=True)
        yield Reading(joined_lines(part.text), part.span)
    yield from _behind_escapes(plain.text, plain.span, reach)


def plain_reading(text: str) -> Reading:
    """The text without white space, and otherwise as it is."""
    return Reading(squeezed(text), _Part(text).span)


def around(places: Sequence[int], reach: int, length: int) -> Iterator[Span]:
    """The ranges of `reach` around each of these ascending places, joined where they touch."""
    start = end = 0
    for place in places:
        if place - reach > end:
            if end:
                yield start, end
            start = place - reach
        end = min(place + reach, length)
    if end:
        yield start, end


@dataclass
class _Part:
    """A part of the text itself, which begins at `start`."""

    text: str
    start: int = 0
    with_breaks: bool = False

    def span(self, first: int, last: int) -> Span:
        begin, end = self._gaps.span(first, last)
        return self.start + begin, self.start + end

    @cached_property
    def _gaps(self) -> GapMap:
        # Only where something was found: it takes longer than the search.
        return GapMap(self.text, with_breaks=self.with_breaks)


def _behind_escapes(text: str, span: Places, reach: int) -> Iterator[Reading]:
    written: Callable[[str], str] = str
    for _ in range(_ESCAPES_AT_MOST):
        if "\\" not in text:
            return
        for start, end in around(line_breaks_behind_escapes(text), reach, len(text)):
            yield _unescaped(Unescaped(text[start:end], numbered=True), _shifted(span, start), written)
        plain = _unescaped(Unescaped(text), span, written)
        yield plain
        text, span, written = plain.text, plain.span, plain.written


def _shifted(span: Places, start: int) -> Places:
    return lambda first, last: span(start + first, start + last)


def _unescaped(found: Unescaped, outer: Places, written: Callable[[str], str]) -> Reading:
    def span(first: int, last: int) -> Span:
        return outer(found.place(first), found.place(last))

    return Reading(found.text, span, lambda part: Unescaped.of(written(part)), found.places)


# --- the escapes of JSON, behind which secrets are not seen ---------------------------------------

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

    def __init__(self, escaped: str, *, numbered: bool = False) -> None:
        """`escaped` has no white space; what stands for white space or a control sequence is left out too.

        `numbered`: numbers and marks of differences at the beginning of its lines are left out.
        """
        parts, end = list[str](), 0
        self.places: list[int] = []
        """For each escape, the index of the first character after it in `text`."""
        self._removed = [0]
        length = 0
        for found in (_WITH_NUMBERS if numbered else _ESCAPE_OR_CONTROL).finditer(escaped):
            letter = "" if found.lastgroup else squeezed(_decoded(found))
            parts += escaped[end : found.start()], letter
            length += found.start() - end + len(letter)
            end = found.end()
            self.places.append(length)
            self._removed.append(end - length)
        self.text = "".join([*parts, escaped[end:]])

    def place(self, index: int) -> int:
        """Where the character with this index of `text` begins in the escaped text."""
        return index + self._removed[bisect_right(self.places, index)]

    @staticmethod
    def of(text: str) -> str:
        """The text without its escapes, with its white space."""
        return _ESCAPE.sub(_decoded, text)


def line_breaks_behind_escapes(escaped: str) -> list[int]:
    """Where lines begin with their number or such a mark in a text that was written into JSON."""
    return [found.start() for found in _NUMBER.finditer(escaped)]


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
