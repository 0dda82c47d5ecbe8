"""JSON lines of an export: written to a file or to stdout, and checked for their end."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from shared.errors import FleetFault, Precondition
from shared.terminal.output import content_writer

_LAST = 1024 * 1024
"""Bytes at the end that are searched for the last line."""


def write_lines(chunks: Iterable[bytes], output: str) -> dict[str, Any]:
    """Write to the file `output`, or to stdout for `-`; returns the last line. Raises FleetFault if it is no end."""
    return _end_of(_written(chunks, content_writer()) if output == "-" else _into(Path(output), chunks))


def _into(path: Path, chunks: Iterable[bytes]) -> bytes:
    """Write next to `path` and move the file there when it is complete: a partial export never has the final name."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            last = _written(chunks, file.write)
        _end_of(last)
        draft.replace(path)
    except OSError as error:
        raise Precondition(f"{str(path)!r} cannot be written", code="E-FILE", why=str(error)) from error
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
    return last


def _written(chunks: Iterable[bytes], write: Callable[[bytes], object]) -> bytes:
    """Write all chunks; returns the last bytes."""
    last = b""
    for chunk in chunks:
        write(chunk)
        last = (last + chunk)[-_LAST:]
    return last


def _end_of(last: bytes) -> dict[str, Any]:
    """The last line. Raises FleetFault if it is not the end record."""
    with suppress(ValueError):
        end = json.loads(last.rstrip(b"\n").rpartition(b"\n")[2])
        if last.endswith(b"\n") and isinstance(end, dict) and end.get("kind") == "end":
            return end
    raise FleetFault("the export is incomplete", code="E-EXPORT-CUT", next="repeat the export")
