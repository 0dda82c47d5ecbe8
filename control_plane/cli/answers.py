"""Prints the answer to a command: the document for scripts, a text for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shared.terminal.command_line import print_json, put


def print_answer(answer: Any, text: Callable[[Any], str], *, as_json: bool) -> None:
    """Print the answer: with `--json` the document as received, otherwise the result of `text`."""
    if as_json:
        print_json(answer)
    elif written := text(answer):
        put(written if written.endswith("\n") else f"{written}\n")


def short_time(text: str | None) -> str:
    """A document's time in short form: `2026-11-21 12:00 UTC`."""
    return f"{text[:10]} {text[11:16]} UTC" if text else ""
