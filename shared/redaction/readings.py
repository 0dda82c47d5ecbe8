"""The ways in which a text is read for secrets: without white space, line numbers, or the escapes of JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from shared.redaction.json_text import Unescaped, line_breaks_behind_escapes
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
