"""Whether a text closes with a question: an agent that ends this way waits for its user, though its run succeeded."""

from __future__ import annotations

import re
import unicodedata

MARKS = frozenset("?\uff1f\u061f\u2047\u2048\u2049\u203d\u055e\u1367\u037e")
"""Question marks: European, East Asian, Arabic, doubled ones, an interrobang, Armenian, Ethiopic, Greek."""
_DECORATION = frozenset("*_~`\"'>|!\uff01\\")
"""Markdown and quotation marks around the last words, and an exclamation mark after the question mark."""
_CATEGORIES = frozenset({"Pe", "Pf", "Pi", "So", "Sk", "Mn", "Cf"})
"""Closing brackets and quotation marks, emoji, and what modifies them."""
_ITEM = re.compile(r"\s*([-*+•]|\(?(\d{1,2}|[A-Za-z])[.)])\s+\S")


def closes_with_question(text: str) -> bool:
    """Whether the last sentence is a question, also with Markdown around it, or with a list of choices below it."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return False
    if _is_question(lines[-1]):
        return True
    before = len(lines)
    while before and _ITEM.match(lines[before - 1]):
        before -= 1
    return 0 < before < len(lines) and _is_question(lines[before - 1])


def _is_question(line: str) -> bool:
    for character in reversed(line.rstrip()):
        if character in MARKS:
            return True
        if not (character.isspace() or character in _DECORATION or unicodedata.category(character) in _CATEGORIES):
            return False
    return False
