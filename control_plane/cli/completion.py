"""What the shell completes: names and ids that the server knows, and fixed choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, get_args

import typer

from control_plane.cli.connection import client
from shared.errors import FleetError
from shared.terminal.output import printable
from shared.titles import title

Offered = list[tuple[str, str]]
"""Words, each with what a shell may show beside it."""
Completer = Callable[[typer.Context, str], Offered]
_TITLES = {"orders": "prompt", "sessions": "title", "tasks": "title"}
"""The field that says what an id stands for, by noun."""
_TITLE = 50
"""Characters."""


def listed(source: str) -> Completer:
    """The entries of a noun's list on the server, such as `projects:slug`, and words besides: `agents:name|user`.

    None if the server cannot be asked, because completion shows no errors.
    """

    def complete(context: typer.Context, incomplete: str) -> Offered:
        listing, *more = source.split("|")
        noun, _, field = listing.partition(":")
        entries = [(str(each[field]), _about(noun, each)) for each in _list(noun, context.params.get("org"))]
        return _matching([*entries, *((word, "") for word in more)], incomplete)

    return complete


def choices(of: Sequence[str] | str) -> Completer:
    """Fixed words, or those of a type, such as `shared.work_order:Mode`, whose module is loaded only for them."""

    def complete(_context: typer.Context, incomplete: str) -> Offered:
        module, _, name = of.partition(":") if isinstance(of, str) else ("", "", "")
        words = get_args(getattr(import_module(module), name)) if module else of
        return _matching([(str(word), "") for word in words], incomplete)

    return complete


def _list(noun: str, organization: str | None) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = client(organization).call(
            import_module(f"control_plane.contract.declarations.{noun}").LIST
        )
    except FleetError:
        return []
    return found


def _about(noun: str, entry: dict[str, Any]) -> str:
    return title(str(entry.get(_TITLES.get(noun, "")) or ""), _TITLE)


def _matching(offered: Offered, incomplete: str) -> Offered:
    shown = ((printable(word), printable(about)) for word, about in offered)
    return [each for each in shown if each[0].startswith(incomplete)]
