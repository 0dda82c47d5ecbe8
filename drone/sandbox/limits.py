"""Limits for every command, and the command lines around it."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Sequence

from drone.sandbox.resources import Resources

OPEN_FILES = 4096
_ALWAYS = ("ulimit -c 0", f"ulimit -n {OPEN_FILES} 2>/dev/null")
"""No core files. Set by a shell and not between fork and exec, where Python code may deadlock in a threaded process."""
LONGEST_ARGUMENT = 100_000
"""Bytes of one argument of a program: Linux allows 128 KiB, macOS 1 MiB for all of them."""
_BLOCK = 512
"""Bytes in a unit of `ulimit -f`."""


def limited(arguments: Sequence[str], resources: Resources | None = None) -> list[str]:
    """Put the limits before a command line; the shell that sets them becomes the command."""
    steps = [*_ALWAYS, *(_of(resources) if resources else ())]
    return ["/bin/sh", "-c", "; ".join([*steps, 'exec "$@"']), "sh", *arguments]


def _of(resources: Resources) -> list[str]:
    size = resources.limits.file_size
    largest = [] if size is None else [f"ulimit -f {size // _BLOCK}"]
    return [*largest, resources.entering()]


def shell_line(command: str | Sequence[str]) -> list[str]:
    """Run a shell line with bash if there is one, else with sh; an argument list stays unchanged."""
    if not isinstance(command, str):
        return list(command)
    return ["bash" if shutil.which("bash") else "sh", "-c", command]


def new_mark(owner: str) -> str:
    """A new mark for one command, beginning with its owner: `end_marked(owner)` finds all of them."""
    return f"{owner}.{secrets.token_hex(8)}"
