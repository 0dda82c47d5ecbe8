"""Generates the page of all operations, their doors and fields: `python -m tests.support.operations_table`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_origin

from pydantic.fields import FieldInfo

from control_plane.cli.options import flag_of
from control_plane.contract.declarations.operation import (
    About,
    ByHand,
    Command,
    NoDoor,
    Operation,
    Tool,
    choices_of,
    every_operation,
    fields_of,
    value_type,
)
from tests.support.documents import ROOT

HAND = " \\*"
PAGE = ROOT / "docs" / "operations-table.md"
HEAD = """# Operations and their doors

Made from `control_plane/contract/declarations` by `python -m tests.support.operations_table`; a test fails where it is
out of date. A door marked with \\* is written by hand. To add one: [adding-an-operation.md](adding-an-operation.md).

| Operation | Role | HTTP, below /api/v1 | MCP tool | Command |
|---|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    operations = every_operation()
    rows = "".join(f"| {' | '.join(_row(operation))} |\n" for operation in operations)
    fields = "\n".join(part for operation in operations for part in _fields(operation))
    return (
        f"{HEAD}{rows}\n## Doors that are missing or written by hand\n\n{_reasons(operations)}\n## Fields\n\n{fields}"
    )


def door_name(door: Any) -> str | None:
    """The name of a door, or None if the operation does not have it."""
    if isinstance(door, NoDoor):
        return None
    return str(door.name if isinstance(door, Tool | ByHand) else door.words)


def _row(operation: Operation) -> list[str]:
    role = f"{operation.role}, everywhere" if operation.everywhere else operation.role
    route = f"`{operation.route}`{HAND if operation.route_by_hand else ''}"
    tool, command = _cell(operation.tool), _cell(operation.command, "fleet ")
    return [operation.name, role, route, tool, command]


def _cell(door: Any, prefix: str = "") -> str:
    name = door_name(door)
    return "none" if name is None else f"`{prefix}{name}`{HAND if isinstance(door, ByHand) else ''}"


def _reasons(operations: list[Operation]) -> str:
    lines = []
    for operation in operations:
        doors = (("MCP", operation.tool), ("command", operation.command))
        lines += [
            f"- {operation.name}, {name}: {door.why}." for name, door in doors if isinstance(door, ByHand | NoDoor)
        ]
        if operation.route_by_hand:
            lines.append(f"- {operation.name}, HTTP: {operation.route_by_hand}.")
    return "\n".join(lines) + "\n"


def _fields(operation: Operation) -> Iterator[str]:
    if operation.request is None:
        return
    head = "| Field | Option | Value | Default | Meaning |\n|---|---|---|---|---|"
    command = operation.command if isinstance(operation.command, Command) else None
    rows = "\n".join(_field(name, info, about, command) for name, info, about in fields_of(operation.request))
    yield f"### {operation.name}\n\n{head}\n{rows}\n"


def _field(name: str, info: FieldInfo, about: About, command: Command | None) -> str:
    default = "required" if info.is_required() else info.get_default(call_default_factory=True) or about.absent or "-"
    return f"| {name} | {_option(name, about, command)} | {_value(info, about)} | {default} | {about.help or '-'} |"


def _option(name: str, about: About, command: Command | None) -> str:
    """How a derived command takes the field; a command that is written by hand has its own help."""
    flag = flag_of(name, about)
    if command is None:
        return "-"
    if name in command.arguments:
        return name.upper()
    return f"`{flag}-env`, `{flag}-stdin`" if about.secret else f"`{flag}`"


def _value(info: FieldInfo, about: About) -> str:
    kind = value_type(info.annotation)
    named = get_origin(kind).__name__ if get_origin(kind) in {list, dict} else getattr(kind, "__name__", "text")
    return "secret" if about.secret else " \\| ".join(choices_of(info.annotation, about)) or about.unit or named


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
