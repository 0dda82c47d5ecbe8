"""An agent's instructions from the user's machine: a file, or stdin."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shared.errors import Invalid
from shared.instructions import MAX_BYTES, instructions_of, too_large


def read_instructions(file: str, given: Mapping[str, Any]) -> str:
    """The text of `file`, or of stdin for `-`; `given` has the agent's name.

    Raises Invalid `E-AGENT-INSTRUCTIONS` if it is missing, empty, too large, or not text.
    """
    try:
        return instructions_of(_content(file))
    except ValueError as error:
        why = str(error)
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
    raise Invalid(
        f"the instructions of agent {given['name']} cannot be read",
        code="E-AGENT-INSTRUCTIONS",
        why=f"{'stdin' if file == '-' else file} {why}",
        next="choose a Markdown file: --instructions agents/lead.md",
    )


def _content(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    path = Path(file)
    with path.open("rb") as opened:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise ValueError(too_large(size))
        return opened.read(MAX_BYTES + 1)
