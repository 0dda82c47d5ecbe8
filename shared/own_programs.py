"""How the programs of this installation are started as child processes."""

from __future__ import annotations

import sys


def module_command(name: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs a module of this installation with the current Python.

    `-P`, also inherited by helpers that the standard library starts: without it, `-m` and `-c` would import modules
    from the current directory, which may be a cloned repository.
    """
    return (sys.executable, "-P", "-m", name, *arguments)
