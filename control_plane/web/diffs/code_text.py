"""A line of code as HTML: colours, changed words, and a mark for each character that would not be visible."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from markupsafe import Markup, escape

from control_plane.web.diffs.syntax import Spans
from control_plane.web.diffs.words import Range
from shared.visible_text import visible_pieces

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
LONGEST = 2000
"""Characters of a line that are shown."""


def code_html(text: str, words: Sequence[Range] = (), colours: Spans = ()) -> Markup:
    """The line; what is too long for a page is cut, and the cut is named."""
    shown = text[:LONGEST]
    html = Markup("").join(_parts(shown, words, colours))
    if len(text) > len(shown):
        html += Markup('<span class="cut">… {:,} more characters</span>').format(len(text) - len(shown))
    return html


def _parts(text: str, words: Sequence[Range], colours: Spans) -> Iterator[Markup]:
    ranges = [*words, *((start, end) for start, end, _ in colours)]
    edges = {0, len(text), *(min(edge, len(text)) for each in ranges for edge in each)}
    for start, end in pairwise(sorted(edges)):
        colour = next((name for first, last, name in colours if first <= start < last), "")
        changed = any(first <= start < last for first, last in words)
        yield _part(_visible(text[start:end]), colour, changed=changed)


def _part(html: Markup, colour: str, *, changed: bool) -> Markup:
    if changed:
        return Markup('<mark class="{}">{}</mark>').format(colour or "word", html)
    return Markup('<span class="{}">{}</span>').format(colour, html) if colour else html


def _visible(text: str) -> Markup:
    return Markup("").join(
        Markup('<span class="odd">{}</span>').format(piece) if is_mark else escape(piece)
        for piece, is_mark in visible_pieces(text)
    )


def attribute(text: str) -> Markup:
    """The text for an attribute that is sent back as it is: what would be hidden in the page is written as a number."""
    ascii_only = str(escape(text)).encode("ascii", "xmlcharrefreplace").decode()
    return Markup(_CONTROL.sub(lambda found: f"&#{ord(found.group())};", ascii_only))  # noqa: S704 - escaped above
