"""Halves of characters, which streams cut apart and models make up: they can be neither stored nor sent."""

from __future__ import annotations

import re

_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def whole(text: str) -> str:
    """Return text whose halves are joined where they belong together, and marked (U+FFFD) where they do not."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def whole_json(text: str) -> str:
    """Return JSON, or what was meant for it, that has no half of a character in an escape either."""
    text = whole(text)
    if "\\ud" not in text.lower():
        return text
    return _ESCAPE.sub(lambda match: "\\ufffd" if match["half"] else match[0], text)
