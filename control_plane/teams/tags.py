"""Tags in comments: `@name`, as people write them (S-050)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import groupby

_TAG = re.compile(r"(?<![\w@])@([a-z][a-z0-9_]*)(?![\w@])")
"""A letter or digit before the `@` makes it an address; `@Foo` and `@1x` are not names."""
_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(?P<marks>`{3,}|~{3,})(?P<rest>.*)")
"""A line that may open a fenced block, also in a quotation or a list item."""
_PARAGRAPHS = re.compile(r"(\n(?=[ \t\r]*\n|[ \t>]*(?:[-*+]|\d{1,9}[.)]|#{1,6})[ \t]))")
"""Where inline code cannot continue: at an empty line, and before a list item or a heading."""
_TICKS = re.compile(r"`+")


def tags_in(text: str) -> tuple[str, ...]:
    """The tagged names in order, including duplicates; tags in code do not count."""
    prose = (" " if is_code else part for part, is_code in parts_of(text))
    return tuple(_TAG.findall("".join(prose)))


def last_valid(text: str, valid: Collection[str]) -> str | None:
    """The last tag that names one of `valid`; None if none does."""
    return next((name for name in reversed(tags_in(text)) if name in valid), None)


def parts_of(text: str) -> Iterator[tuple[str, bool]]:
    """The text in parts, each with whether it is code: inline code, or the lines of fenced blocks."""
    for fenced, lines in groupby(_lines(text), key=lambda each: each[1]):
        block = "".join(line for line, _ in lines)
        if fenced:
            yield block, True
        else:
            for paragraph in _PARAGRAPHS.split(block):
                yield from _parts_of_paragraph(paragraph)


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """The lines, each with whether it belongs to a fenced block. An unclosed one extends to the end, as in Markdown."""
    closing: re.Pattern[str] | None = None
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        if closing is not None:
            yield line, True
            if closing.fullmatch(line):
                closing = None
        elif (opened := _FENCE.match(line)) and _opens(opened):
            closing = re.compile(rf"[ \t>]*{opened['marks'][0]}{{{len(opened['marks'])},}}[ \t\r\n]*")
            yield line, True
        else:
            yield line, False


def _opens(fence: re.Match[str]) -> bool:
    """Whether the marks open a block: backticks followed by another backtick on the line are inline code."""
    return fence["marks"][0] == "~" or "`" not in fence["rest"]


def without_code(paragraph: str) -> str:
    """The paragraph without inline code."""
    return " ".join(part for part, is_code in _parts_of_paragraph(paragraph) if not is_code)


def _parts_of_paragraph(paragraph: str) -> Iterator[tuple[str, bool]]:
    """Inline code spans from a run of backticks to the next run of the same length."""
    rows = [*_TICKS.finditer(paragraph)]
    last = {len(row[0]): row.start() for row in rows}
    goes_on, opened = 0, None
    for row in rows:
        if opened is None and last[len(row[0])] > row.start():
            opened = row
        elif opened is not None and len(row[0]) == len(opened[0]):
            yield paragraph[goes_on : opened.start()], False
            yield paragraph[opened.start() : row.end()], True
            goes_on, opened = row.end(), None
    yield paragraph[goes_on:], False
