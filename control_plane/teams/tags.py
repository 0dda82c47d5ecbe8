"""Tags in comments: `@name`, as people write them (S-050)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

_TAG = re.compile(r"(?<![\w@])@([a-z][a-z0-9_]*)(?![\w@])")
"""A letter or digit before the `@` makes it an address; `@Foo` and `@1x` are not names."""
_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(?P<marks>`{3,}|~{3,})(?P<rest>.*)")
"""A line that may open a fenced block, also in a quotation or a list item."""
_PARAGRAPHS = re.compile(r"\n[ \t\r]*\n")
_TICKS = re.compile(r"`+")


def tags_in(text: str) -> tuple[str, ...]:
    """The tagged names in order, including duplicates; tags in code do not count."""
    paragraphs = _PARAGRAPHS.split("\n".join(_outside_fences(text)))
    return tuple(name for paragraph in paragraphs for name in _TAG.findall(without_code(paragraph)))


def last_valid(text: str, valid: Collection[str]) -> str | None:
    """The last tag that names one of `valid`; None if none does."""
    return next((name for name in reversed(tags_in(text)) if name in valid), None)


def _outside_fences(text: str) -> Iterator[str]:
    """The lines outside fenced blocks. An unclosed block extends to the end, as in any Markdown."""
    closing: re.Pattern[str] | None = None
    for line in text.split("\n"):
        if closing is not None:
            if closing.fullmatch(line):
                closing = None
        elif (opened := _FENCE.match(line)) and _opens(opened):
            closing = re.compile(rf"[ \t>]*{opened['marks'][0]}{{{len(opened['marks'])},}}[ \t\r]*")
            yield ""
        else:
            yield line


def _opens(fence: re.Match[str]) -> bool:
    """Whether the marks open a block: backticks followed by another backtick on the line are inline code."""
    return fence["marks"][0] == "~" or "`" not in fence["rest"]


def without_code(paragraph: str) -> str:
    """The paragraph without inline code, which spans from a run of backticks to the next run of the same length."""
    rows = [*_TICKS.finditer(paragraph)]
    last = {len(row[0]): row.start() for row in rows}
    parts, goes_on, opened = [], 0, None
    for row in rows:
        if opened is None and last[len(row[0])] > row.start():
            opened = row
        elif opened is not None and len(row[0]) == len(opened[0]):
            parts.append(paragraph[goes_on : opened.start()])
            goes_on, opened = row.end(), None
    return " ".join([*parts, paragraph[goes_on:]])
