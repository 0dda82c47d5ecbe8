"""What changed within a line: the parts of both versions that differ, by words."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

Range = tuple[int, int]
"""First character, and the one after the last."""
_WORD = re.compile(r"\w+|\s+|.", re.DOTALL)
_SOLID = re.compile(r"\w+|[^\w\s]")
LONGEST = 1000
"""Characters of a line that is compared by words: the cost grows with the square."""
MOST_WORDS = 300
ALIKE = 0.4
"""Lines that are less similar than this were rewritten; marks in them would be noise."""


def changed_words(old: str, new: str) -> tuple[list[Range], list[Range]] | None:
    """The changed parts of both lines; None if they are too long, or have too little in common."""
    if max(len(old), len(new)) > LONGEST:
        return None
    before, after = _WORD.findall(old), _WORD.findall(new)
    if max(len(before), len(after)) > MOST_WORDS:
        return None
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if 2 * _common(matcher, before) < ALIKE * sum(len(word) for word in (*before, *after) if word.strip()):
        return None
    parts = [each for each in matcher.get_opcodes() if each[0] != "equal"]
    return _ranges(before, [each[1:3] for each in parts]), _ranges(after, [each[3:5] for each in parts])


def likeness(old: str, new: str) -> float:
    """How much two lines have in common, from 0 to 1."""
    if max(len(old), len(new)) > LONGEST:
        return 0.0
    return SequenceMatcher(None, _SOLID.findall(old), _SOLID.findall(new), autojunk=False).ratio()


def _common(matcher: SequenceMatcher[str], before: list[str]) -> int:
    """Characters of the words, without blanks, that both have."""
    blocks = matcher.get_matching_blocks()
    return sum(len(word.strip()) for block in blocks for word in before[block.a : block.a + block.size])


def _ranges(words: list[str], parts: list[tuple[int, int]]) -> list[Range]:
    """Ranges of words as ranges of characters; neighbours become one."""
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    found: list[Range] = []
    for first, last in parts:
        if first == last:
            continue
        start, end = starts[first], starts[last]
        if found and found[-1][1] >= start:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found
