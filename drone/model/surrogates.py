"""What models write that can be neither stored nor sent: lone surrogates, and raw line breaks in JSON."""

from __future__ import annotations

import json
import re

_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_CONTROL = re.compile(r"[\x00-\x1f]")
_STRING = re.compile(r'"(?:\\.|[^"\\])*+"?', re.DOTALL)


def whole(text: str) -> str:
    """Return the text with surrogate pairs joined, and lone surrogates replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def whole_json(text: str) -> str:
    """Return JSON, valid or not, without lone surrogates in its escapes either.

    A raw line break or another control character in a string, which JSON does not allow, becomes an escape if that is
    all that is wrong: what the model means is clear.
    """
    text = whole(text)
    if "\\ud" in text.lower():
        text = _ESCAPE.sub(lambda match: "\\ufffd" if match["half"] else match[0], text)
    if _CONTROL.search(text) is None:
        return text
    escaped = _STRING.sub(lambda string: _CONTROL.sub(lambda raw: json.dumps(raw[0])[1:-1], string[0]), text)
    try:
        json.loads(escaped)
    except (ValueError, RecursionError):
        return text
    return escaped
