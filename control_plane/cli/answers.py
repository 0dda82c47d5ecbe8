"""Prints the answer to a command: the document for scripts, a text for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shared.terminal.command_line import print_json, put
from shared.terminal.output import printable

_AS_THEY_ARE = {"command", "output"}


def print_answer(answer: Any, text: Callable[[Any], str], *, as_json: bool) -> None:
    """Print the answer: with `--json` the document as received, otherwise the result of `text`."""
    if as_json:
        print_json(answer)
    elif written := text(for_people(answer)):
        put(written if written.endswith("\n") else f"{written}\n")


def for_people(document: Any) -> Any:
    """The document with all its texts, keys included, as a terminal may show them.

    Commands and their outputs stay as they are: in a command each character counts, and only `safe_lines` knows which
    codes of an output are colors.
    """
    if isinstance(document, str):
        return printable(document)
    if isinstance(document, dict):
        return {
            printable(name): value if name in _AS_THEY_ARE else for_people(value) for name, value in document.items()
        }
    if isinstance(document, list):
        return [for_people(each) for each in document]
    return document


def short_time(text: str | None) -> str:
    """A document's time in short form: `2026-11-21 12:00 UTC`."""
    return f"{text[:10]} {text[11:16]} UTC" if text else ""


def outcome_word(document: dict[str, Any]) -> str:
    """The outcome of an ended order or group of orders, else its status."""
    return str(document.get("outcome") or document["status"])


def exit_code(document: dict[str, Any]) -> int:
    """The exit code of a command that followed an order or a group of orders to its end: 0 only for a green outcome."""
    from shared.outcome import GREEN

    return 0 if outcome_word(document) in {*GREEN, *_GREEN_STATUSES} else 1


_GREEN_STATUSES = ("succeeded", "won")
"""Of an order or a graph, and of a race, without an outcome."""


def cost(usd: float | None) -> str:
    """Money for people; an unknown price is never shown as zero."""
    return "price unknown" if usd is None else f"${usd:.4f}"
