"""Answers as text for people, by the labels that the declarations give to their fields."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, get_args

from control_plane.cli.answers import short_time
from control_plane.contract.declarations.operation import About, Command, Operation, fields_of, value_type
from shared.terminal.command_line import print_table
from shared.terminal.output import printable

Doc = dict[str, Any]


def lines_of(answer: Doc, operation: Operation) -> str:
    """A line for each field that has a label, and one more for each further value."""
    fields = [(name, info, about) for name, info, about in fields_of(operation.answer) if about.label]
    width = max(len(about.label) for _, _, about in fields)
    shown = [(about, _line(answer.get(name), info.annotation, about)) for name, info, about in fields]
    lines = [f"{about.label:<{width}}  {text}" for about, value in shown for text in _texts(value, about)]
    return "\n".join(lines) + "\n"


def print_rows(answers: list[Doc], operation: Operation, command: Command) -> None:
    """Print the columns that the command names as a table."""
    fields = {name: (info, about) for name, info, about in fields_of(get_args(operation.answer)[0])}
    columns = [(name, *fields[name]) for name in command.columns]
    cells = [[(each.get(name), info.annotation, about) for name, info, about in columns] for each in answers]
    rows = [tuple(_cell(*cell) for cell in row) for row in cells]
    print_table([about.label.upper() for _, _, about in columns], rows, empty=command.empty)


def _line(value: Any, annotation: Any, about: About) -> Any:
    if about.shows and isinstance(value, list):
        return [": ".join(str(part) for part in _fields_shown(each, about) if part) for each in value]
    shown = _plain(_fields_shown(value, about), annotation, about)
    return ": ".join(shown) if about.shows and shown else shown


def _plain(value: Any, annotation: Any, about: About) -> Any:
    """A time in short form, a switch as on or off, any other value unchanged."""
    if value_type(annotation) is datetime:
        return short_time(value) or None
    if value_type(annotation) is bool and "/" in about.flag:
        return "on" if value else "off"
    return value


def _fields_shown(value: Any, about: About) -> Any:
    """Of a nested document, the fields that people see; any other value unchanged."""
    if not about.shows or not isinstance(value, dict):
        return value
    return ["" if value[name] is None else str(value[name]) for name in about.shows.split()]


def _texts(value: Any, about: About) -> Iterator[str]:
    if isinstance(value, list) and value:
        yield from (printable(str(each)) for each in value)
    elif value or (value not in (None, "", [], {}) and not about.absent):
        yield f"{_text(value)} {about.unit}".rstrip()
    elif about.absent or value in ([], {}):
        yield about.absent or "none"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}"
    return printable(value if isinstance(value, str) else json.dumps(value))


def _cell(value: Any, annotation: Any, about: About) -> Any:
    if about.shows:
        return next(iter(_fields_shown(value, about) or ()), None)
    value = _plain(value, annotation, about)
    return ",".join(map(str, value)) or None if isinstance(value, list) else value
