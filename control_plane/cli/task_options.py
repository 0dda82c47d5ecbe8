"""What schedules and triggers share on the command line: the options that describe the tasks they create."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from control_plane.cli.answers import short_time
from control_plane.cli.derived_commands import TypedCommand
from shared.errors import Invalid
from shared.terminal.text_file import text_of

Doc = dict[str, Any]
DescriptionFile = Annotated[
    str | None, typer.Option("--description-file", metavar="FILE|-", help="The description from a file, or stdin.")
]


def read_description(fields: Doc, file: str | None) -> None:
    """Read the description of a task from a file. Raises Invalid for two descriptions, NotFound for a missing file."""
    if file is None:
        return
    if "description" in fields:
        raise Invalid(
            "--description and --description-file cannot be used together",
            code="E-USAGE",
            next="leave out --description",
        )
    fields["description"] = text_of(file)


def task_fields(call: TypedCommand, file: str | None) -> Doc:
    """The fields of the task that a command describes, which may be none."""
    fields: Doc = call.fields.setdefault("task", {})
    read_description(fields, file)
    if not fields and call.operation.method == "PATCH":
        del call.fields["task"]
    return fields


def task_lines(task: Doc) -> list[str]:
    """The tasks that will be created, as text for people."""
    first = (task.get("description") or "").strip().partition("\n")[0]
    named = {"title": task.get("title"), "text": first[:80]} | {
        each: task.get(each) for each in ("project", "assignee", "mode", "priority")
    }
    return [f"{name:<10}{value}" for name, value in named.items() if value not in {None, ""}]


def last_task(row: Doc) -> list[str]:
    """The newest task that a schedule or trigger created, and why one could not be created."""
    last = f"{row['last_task']} at {short_time(row['last_at'])}" if row["last_task"] else "none yet"
    return [f"last task {last}", *([f"error     {row['last_error']}"] if row["last_error"] else [])]
