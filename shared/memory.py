"""What a note for later orders may be, on the drone that proposes it and in the control plane that keeps it."""

from __future__ import annotations

MAX_NOTE = 500
"""Characters of a note."""
MAX_REASON = 500
"""Characters of the reason for it."""


def one_line(text: str) -> str:
    """The text on one line, with single spaces."""
    return " ".join(text.replace("\0", " ").split())
