"""An agent's instructions as bytes of a file: read the same way by the command line and by a drone (S-010)."""

from __future__ import annotations

MAX_INSTRUCTIONS = 100_000
"""Characters. They are in every call of the model."""
MAX_BYTES = 4 * MAX_INSTRUCTIONS
"""No text of so many characters has more."""


def instructions_of(content: bytes) -> str:
    """The text of an instructions file, without white space around it.

    Raises ValueError that says what the file is (`is empty`, `is not UTF-8: byte 7`) to be put behind its name.
    """
    if len(content) > MAX_BYTES:
        raise ValueError(too_large(len(content)))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8: byte {error.start}") from error
    if "\0" in text:
        raise ValueError("is no text: it holds NUL")
    if not text.strip():
        raise ValueError("is empty")
    if len(text) > MAX_INSTRUCTIONS:
        raise ValueError(f"has {len(text):,} characters, and {MAX_INSTRUCTIONS:,} are the most")
    return text.strip()


def too_large(size: int) -> str:
    """What to say of a file that nobody needs to read to see that it has too much in it."""
    return f"has {size:,} bytes, and {MAX_INSTRUCTIONS:,} characters are the most"
