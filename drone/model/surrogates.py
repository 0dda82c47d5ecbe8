"""Lone surrogates, which streams split and models invent: they can be neither stored nor sent."""

from __future__ import annotations

import re

_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def whole(text: str) -> str:
    """Return the text with surrogate pairs joined, and lone surrogates replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def whole_json(text: str) -> str:
    """Return JSON, valid or not, without lone surrogates in its escapes either."""
    text = whole(text)
    if "\\ud" not in text.lower():
        return text
    return _ESCAPE.sub(lambda match: "\\ufffd" if match["half"] else match[0], text)
