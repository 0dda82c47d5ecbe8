"""The title of a text: what stands for an order or a turn in a list."""

from __future__ import annotations

import re

LONGEST = 72
"""Characters, as of the subject of a commit."""
_HEADING = re.compile(r"^ {0,3}#{1,6}\s+")


def title(text: str, longest: int = LONGEST) -> str:
    """The first line that is not empty, cut with an ellipsis; a Markdown heading without its marks.

    Empty for a text without such a line.
    """
    lines = (_HEADING.sub("", line).strip() for line in text.split("\n"))
    first = next((line for line in lines if line), "")
    return first if len(first) <= longest else f"{first[: longest - 1].rstrip()}…"
