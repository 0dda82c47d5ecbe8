"""Text that a command receives as a file or through a pipe."""

from __future__ import annotations

import sys
from pathlib import Path

from shared.errors import Invalid, NotFound


def text_of(file: str) -> str:
    """The text of a file, or of stdin for `-`. Raises NotFound, or Invalid if it is not text."""
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).expanduser().read_bytes()
        return raw.decode("utf-8-sig").rstrip("\n")
    except UnicodeDecodeError as error:
        where = "stdin" if file == "-" else file
        raise Invalid(f"{where} is not UTF-8 text", code="E-FILE-TEXT", why=f"byte {error.start} is invalid") from None
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {error.strerror}", code="E-FILE-404", next="ls -l " + file) from None
