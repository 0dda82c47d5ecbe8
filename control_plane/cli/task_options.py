"""What schedules and triggers have in common on the command line: the options that describe the tasks they make."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from control_plane.cli.text_file import text_of
from shared.errors import Invalid

PANEL = "Teams"
Doc = dict[str, Any]
Title = Annotated[str | None, typer.Option("--title", help="The tasks' title, in one line.")]
Description = Annotated[str | None, typer.Option("--description", help="What agents are told.")]
DescriptionFile = Annotated[
    str | None, typer.Option("--description-file", metavar="FILE|-", help="The description from a file, or stdin.")
]
ProjectOption = Annotated[str | None, typer.Option("--project", help="The project's slug.")]
Assignee = Annotated[
    str | None, typer.Option("--assignee", help="An agent, or user; default: the first agent without a boss.")
]
ModeOption = Annotated[str | None, typer.Option("--mode", help="plan, build, test, ship or develop.")]
Priority = Annotated[int | None, typer.Option("--priority", help="-100 to 100; higher begins first.")]
MaxIterations = Annotated[int | None, typer.Option("--max-iterations", help="For each run; 0: no limit.")]
CostLimit = Annotated[float | None, typer.Option("--cost-limit", metavar="USD", help="For each run.")]
MaxRunSeconds = Annotated[float | None, typer.Option("--max-run-seconds", help="For each run.")]
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


def task_given(options: Doc) -> Doc:
    """The fields of a task that the options name. Raises Invalid for two descriptions, NotFound for a missing file."""
    file = options.get("description_file")
    if file is not None and options.get("description") is not None:
        raise Invalid("two descriptions were given", code="E-USAGE", next="leave out --description")
    given = {name: options[name] for name in _FIELDS if options.get(name) is not None}
    return {**given, "description": text_of(file)} if file is not None else given


def task_lines(task: Doc) -> list[str]:
    """What a person is shown of the tasks that will be made."""
    first = (task.get("description") or "").strip().partition("\n")[0]
    named = {"title": task.get("title"), "told": first[:80]} | {
        each: task.get(each) for each in ("project", "assignee", "mode", "priority")
    }
    return [f"{name:<10}{value}" for name, value in named.items() if value not in {None, ""}]
