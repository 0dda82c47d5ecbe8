"""Replaces parts of a text by the mark of a removed secret."""

from __future__ import annotations

from collections.abc import Iterable

MARK = "[redacted]"

Span = tuple[int, int]


def joined(spans: Iterable[Span]) -> list[Span]:
    result: list[Span] = []
    for start, end in sorted(spans):
        if result and start < result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result


def replaced(text: str, spans: Iterable[Span], *, start: int = 0, skip: int = 0) -> str:
    """Replace each span by the mark, from `start` on; a span over the first `skip` characters already has its mark."""
    pieces = []
    position = start
    for first, end in spans:
        if end <= start:
            continue
        if first > start or not skip:
            pieces += [text[position : max(first, start)], MARK]
        position = end
    return "".join([*pieces, text[position:]])
