"""What the completion script of a shell asks the program for: the words that continue a line."""

from __future__ import annotations

import os
from typing import Any

from shared.terminal.output import put

LINES = "complete_fish"
"""The only instruction that is obeyed; scripts that typer wrote for zsh evaluate the answer to theirs."""
_ON_ONE_LINE = dict.fromkeys(map(ord, "\t\r\n"), " ")


def completion_variable(name: str) -> str:
    """The variable with which a shell asks the program `name` for completions instead of running it."""
    return f"_{name.upper().replace('-', '_')}_COMPLETE"


def print_completions(command: Any, name: str) -> int:
    """Print each word that continues the line, with what it means behind a tab; returns 0 if there is one, else 1."""
    variable = completion_variable(name)
    if os.environ[variable] != LINES:
        return 1
    try:
        offered = _offered(command, name, variable)
    except Exception:  # noqa: BLE001 - the boundary: an error would be printed into the line that the user types
        return 1
    for each in offered:
        put("\t".join(text.translate(_ON_ONE_LINE) for text in (each.value, each.help) if text) + "\n")
    return 0 if offered else 1


def _offered(command: Any, name: str, variable: str) -> list[Any]:
    # Public, though typer declares no exports. Its own scripts and formats render markup, and wrap lines.
    from typer.completion import completion_init, shell_completion  # type: ignore[attr-defined]

    completion_init()
    kind: Any = shell_completion.get_completion_class("fish")
    shell = kind(command, {}, name, variable)
    return list(shell.get_completions(*shell.get_completion_args()))
