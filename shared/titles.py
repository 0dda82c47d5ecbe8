"""The title of a text: what stands for an order or a turn in a list."""

from __future__ import annotations

LONGEST = 72
"""Characters, as of the subject of a commit."""


def title(text: str, longest: int = LONGEST) -> str:
    """The first line that is not empty, cut with an ellipsis; empty for a text without one."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first if len(first) <= longest else f"{first[: longest - 1].rstrip()}…"
