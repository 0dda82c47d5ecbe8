"""An agent's instructions from the bytes of a file: read in the same way by the command line and by a drone (S-010)."""

from __future__ import annotations

from shared.foreign_text import decoded

MAX_INSTRUCTIONS = 100_000
"""Characters. They are sent with every model call."""
MAX_BYTES = 4 * MAX_INSTRUCTIONS
"""The maximum size in UTF-8 of a text with this many characters."""


def instructions_of(content: bytes) -> str:
    """Return the text of an instructions file, stripped.

    Raises ValueError whose text continues the file's name (`is empty`, `is not UTF-8: byte 7`).
    """
    if len(content) > MAX_BYTES:
        raise ValueError(too_large(len(content)))
    text = decoded(content)
    if not text.strip():
        raise ValueError("is empty")
    if len(text) > MAX_INSTRUCTIONS:
        raise ValueError(f"has {len(text):,} characters; the maximum is {MAX_INSTRUCTIONS:,}")
    return text.strip()


def too_large(size: int) -> str:
    """The problem with a file whose size alone shows that it is too large."""
    return f"has {size:,} bytes; the maximum is {MAX_INSTRUCTIONS:,} characters"
