"""Limits for every command, and the command lines around it."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

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
    return [shell_program(), "-c", command]


def shell_program() -> str:
    return "bash" if shutil.which("bash") else "sh"


def is_long(command: str | Sequence[str]) -> bool:
    """Whether this is a shell line that is too long for an argument."""
    return isinstance(command, str) and len(os.fsencode(command)) > LONGEST_ARGUMENT


@contextmanager
def passable(
    command: str | Sequence[str], shell: str, directory: Path, seen_as: str = ""
) -> Iterator[str | Sequence[str]]:
    """The command; a shell line that is too long for an argument is run from a file in `directory`.

    `seen_as`: the path of that directory for commands, if it differs.
    """
    if not is_long(command):
        yield command
        return
    directory.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix="command-", suffix=".sh", dir=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o444)  # commands may have another account
            file.write(os.fsencode(str(command)))
        yield [shell, str(Path(seen_as or directory, Path(name).name))]
    finally:
        with suppress(OSError):  # the command may have done anything to it
            Path(name).unlink()


def new_mark(owner: str) -> str:
    """A new mark for one command, beginning with its owner: `end_marked(owner)` finds all of them."""
    return f"{owner}.{secrets.token_hex(8)}"


def mark_of_keeper(owner: str) -> str:
    """Begins with its owner too, but not like those of commands."""
    return f"{owner}:keeper"
