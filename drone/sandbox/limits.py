"""Limits for every command, and the command lines around it."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Sequence

OPEN_FILES = 4096
_LIMITS = f'ulimit -c 0; ulimit -n {OPEN_FILES} 2>/dev/null; exec "$@"'
"""No core files. Set by a shell and not between fork and exec, where Python code may deadlock in a threaded process."""


def limited(arguments: Sequence[str]) -> list[str]:
    """Put the limits before a command line; the shell that sets them becomes the command."""
    return ["/bin/sh", "-c", _LIMITS, "sh", *arguments]


def shell_line(command: str | Sequence[str]) -> list[str]:
    """Run a shell line with bash if there is one, else with sh; an argument list stays unchanged."""
    if not isinstance(command, str):
        return list(command)
    return ["bash" if shutil.which("bash") else "sh", "-c", command]


def new_mark(owner: str) -> str:
    """A new mark for one command, beginning with its owner: `end_marked(owner)` finds all of them."""
    return f"{owner}.{secrets.token_hex(8)}"
