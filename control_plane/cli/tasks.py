"""`fleet task …` and `fleet comment`: threads that agents and people work on."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from control_plane.cli.answers import print_answer
from control_plane.cli.common_options import Org
from control_plane.cli.completion import listed
from control_plane.cli.connection import client
from shared.errors import Invalid
from shared.terminal.command_line import JsonFlag, examples, put, say
from shared.terminal.text_file import argument_text, text_of

PANEL = "Teams"
Doc = dict[str, Any]
TaskId = Annotated[
    str, typer.Argument(metavar="TASK", help="The task's id, for example PAYM-0001.", autocompletion=listed("tasks:id"))
]
Text = Annotated[
    str, typer.Argument(metavar="TEXT", help="The comment; `-` reads it from stdin. @name hands the task over.")
]


def add_to(app: typer.Typer) -> None:
    """Register `fleet comment`, which is `fleet task comment`."""
    shown = examples("fleet comment PAYM-0001 '@tester does this hold?'", "fleet comment PAYM-0001 - < findings.md")
    app.command("comment", rich_help_panel=PANEL, epilog=shown)(comment)


def add_commands(group: typer.Typer) -> None:
    """Register the hand-written commands of tasks."""
    for name, command, example in (
        ("create", create, "fleet task create 'Add a currency to prices' --project shop"),
        ("follow", follow, "fleet task follow PAYM-0001"),
        ("comment", comment, "fleet task comment PAYM-0001 '@backend please add a test'"),
    ):
        group.command(name, epilog=examples(example))(command)


def create(
    title: Annotated[str, typer.Argument(metavar="TITLE", help="Title of the task, one line.")],
    description: Annotated[
        str | None, typer.Option("--description", help="Description for the agents (default: the title).")
    ] = None,
    description_file: Annotated[
        str | None, typer.Option("--description-file", metavar="FILE|-", help="The description from a file, or stdin.")
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", help="The project's slug.", autocompletion=listed("projects:slug"))
    ] = None,
    assignee: Annotated[
        str | None,
        typer.Option(
            "--assignee",
            help="An agent, or user (default: the first agent without a boss).",
            autocompletion=listed("agents:name", "user"),
        ),
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            help="plan (read-only), build, test, ship, develop, or one of `fleet mode ls`.",
            autocompletion=listed("modes:name"),
        ),
    ] = "build",
    priority: Annotated[int, typer.Option("--priority", help="-100 to 100; higher starts first.")] = 0,
    max_iterations: Annotated[
        int | None,
        typer.Option("--max-iterations", help="Maximum steps of each run (default: the agent's; 0 = unlimited)."),
    ] = None,
    cost_limit: Annotated[
        float | None,
        typer.Option(
            "--cost-limit", metavar="USD", help="Maximum cost of each run (default: the agent's; 0 = unlimited)."
        ),
    ] = None,
    max_run_seconds: Annotated[
        float | None,
        typer.Option("--max-run-seconds", help="Time limit of each run in seconds (default 1800; 0 = unlimited)."),
    ] = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Create a task; its agent starts as soon as possible."""
    if description is not None and description_file is not None:
        raise Invalid(
            "--description and --description-file cannot be used together",
            code="E-USAGE",
            next="leave out --description",
        )
    request: Doc = {
        "title": title,
        "description": text_of(description_file) if description_file is not None else description,
        "project": project,
        "assignee": assignee,
        "mode": mode,
        "priority": priority,
        "max_iterations": max_iterations,
        "cost_limit": cost_limit,
        "max_run_seconds": max_run_seconds,
    }
    from control_plane.declarations import tasks
    from control_plane.declarations.task_documents import TaskRequest
    from control_plane.validation.invalid_requests import checked

    given = {name: value for name, value in request.items() if value is not None}
    made = client(org).call(tasks.ADD, checked(TaskRequest, given, form="fleet task create --help"))
    print_answer(made, _created, as_json=as_json)


def _created(task: Doc) -> str:
    """The id on stdout, for scripts; what happens next on stderr."""
    put(f"{task['id']}\n")
    say(task["note"])
    say(f"  next  fleet task follow {task['id']}")
    return ""


def follow(task_id: TaskId, as_json: JsonFlag = False, org: Org = None) -> int:
    """Follow a task until it needs you or is done (exit code 0), or failed or was canceled (1)."""
    from control_plane.cli.task_follow import follow_task

    return follow_task(client(org), task_id, as_json=as_json)


def comment(task_id: TaskId, text: Text, as_json: JsonFlag = False, org: Org = None) -> None:
    """Comment on an open or failed task; the last @agent or @user in it becomes the assignee."""
    from control_plane.declarations import tasks
    from control_plane.declarations.task_documents import CommentRequest

    request = CommentRequest(text=argument_text(text))
    print_answer(client(org).call(tasks.COMMENT, request, task_id=task_id), _noted, as_json=as_json)


def _noted(written: Doc) -> str:
    say(written["note"])
    return ""
