"""What schedules and triggers share on the command line: the options that describe the tasks they create."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from control_plane.cli.answers import short_time
from control_plane.cli.completion import listed
from shared.errors import Invalid
from shared.terminal.text_file import text_of

Doc = dict[str, Any]
Title = Annotated[str | None, typer.Option("--title", help="Title of the tasks, one line.")]
Description = Annotated[str | None, typer.Option("--description", help="Description for the agents.")]
DescriptionFile = Annotated[
    str | None, typer.Option("--description-file", metavar="FILE|-", help="The description from a file, or stdin.")
]
ProjectOption = Annotated[
    str | None, typer.Option("--project", help="The project's slug.", autocompletion=listed("projects:slug"))
]
Assignee = Annotated[
    str | None,
    typer.Option(
        "--assignee",
        help="An agent, or user (default: the first agent without a boss).",
        autocompletion=listed("agents:name", "user"),
    ),
]
ModeOption = Annotated[
    str | None,
    typer.Option(
        "--mode",
        help="plan (read-only), build, test, ship, develop, or one of `fleet mode ls`.",
        autocompletion=listed("modes:name"),
    ),
]
Priority = Annotated[str | None, typer.Option("--priority", metavar="<int>", help="-100 to 100; higher starts first.")]
MaxIterations = Annotated[
    str | None, typer.Option("--max-iterations", metavar="<int>", help="Maximum steps of each run (0 = unlimited).")
]
CostLimit = Annotated[
    str | None, typer.Option("--cost-limit", metavar="USD", help="Maximum cost of each run (0 = unlimited).")
]
MaxRunSeconds = Annotated[
    str | None,
    typer.Option("--max-run-seconds", metavar="<float>", help="Time limit of each run in seconds (0 = unlimited)."),
]
Enabled = Annotated[bool | None, typer.Option("--on/--off", help="Enable or disable it.")]
_FIELDS = (
    "title",
    "description",
    "project",
    "assignee",
    "mode",
    "priority",
    "max_iterations",
    "cost_limit",
    "max_run_seconds",
)


def named_of(options: Doc, *names: str) -> Doc:
    """The given options; numbers are text, which the request validates."""
    return {name: options[name] for name in names if options[name] is not None}


def task_given(options: Doc) -> Doc:
    """The task fields that the options name. Raises Invalid for two descriptions, NotFound for a missing file."""
    file = options.get("description_file")
    if file is not None and options.get("description") is not None:
        raise Invalid(
            "--description and --description-file cannot be used together",
            code="E-USAGE",
            next="leave out --description",
        )
    given = named_of(options, *_FIELDS)
    return {**given, "description": text_of(file)} if file is not None else given


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
