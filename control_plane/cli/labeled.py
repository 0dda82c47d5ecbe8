"""Answers as text for people, by the labels that the declarations give to their fields."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

from control_plane.declarations.operation import About, Command, Operation, fields_of
from shared.terminal.command_line import print_table
from shared.terminal.output import printable

Doc = dict[str, Any]


def lines_of(answer: Doc, operation: Operation) -> str:
    """A line for each field that has a label, a further one for each further value."""
    shown = [(name, about) for name, _, about in fields_of(operation.answer) if about.label]
    width = max(len(about.label) for _, about in shown)
    lines = [f"{about.label:<{width}}  {text}" for name, about in shown for text in _texts(answer.get(name), about)]
    return "\n".join(lines) + "\n"


def print_rows(answers: list[Doc], operation: Operation, command: Command) -> None:
    """A table of the columns that the command names."""
    labels = {name: about.label for name, _, about in fields_of(get_args(operation.answer)[0])}
    rows = [tuple(_cell(each[name]) for name in command.columns) for each in answers]
    print_table([labels[name].upper() for name in command.columns], rows, empty=command.empty)


def _texts(value: Any, about: About) -> Iterator[str]:
    if isinstance(value, list) and value:
        yield from (printable(str(each)) for each in value)
    elif value or (value is not None and not about.absent):
        yield f"{_text(value)} {about.unit}".rstrip()
    elif about.absent:
        yield about.absent


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}"
    return printable(value if isinstance(value, str) else json.dumps(value))


def _cell(value: Any) -> Any:
    return ",".join(map(str, value)) or None if isinstance(value, list) else value
