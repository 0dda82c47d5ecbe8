"""`fleet task …`, `fleet comment` and `fleet run …`: threads that agents and users work on, and the runs on them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from control_plane.cli.answers import cost, print_answer
from control_plane.cli.common_options import Org
from control_plane.cli.completion import listed
from control_plane.cli.connection import client
from control_plane.cli.derived_commands import ByHandCommand, TypedCommand
from control_plane.cli.task_options import DescriptionFile, read_description
from shared.durations import duration_label
from shared.errors import Invalid
from shared.terminal.command_line import JsonFlag, examples, group, print_json, print_table, put, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from control_plane.contract.declarations.operation import Operation

PANEL = "Teams"
Doc = dict[str, Any]
TaskId = Annotated[
    str, typer.Argument(metavar="TASK", help="The task's id, for example PAYM-0001.", autocompletion=listed("tasks:id"))
]


def add_to(app: typer.Typer) -> None:
    """Register `fleet comment`, which is `fleet task comment`, and `fleet run`."""
    SHORT_COMMENT.add_to(app)
    runs = group("run", "Show runs of agents on tasks.")
    runs.command("ls", epilog=examples("fleet run ls --task PAYM-0001"))(list_runs)
    runs.command("show", epilog=examples("fleet run show RUN", "fleet run show RUN --full"))(show_run)
    app.add_typer(runs, rich_help_panel=PANEL)


def add_commands(commands: typer.Typer) -> None:
    """Register the hand-written commands of tasks."""
    CREATE.add_to(commands)
    commands.command("follow", epilog=examples("fleet task follow PAYM-0001"))(follow)
    COMMENT.add_to(commands)


def create(call: TypedCommand, *, description_file: DescriptionFile = None, as_json: JsonFlag = False) -> int:
    """Create a task; its agent starts as soon as possible."""
    read_description(call.fields, description_file)
    print_answer(call.perform(), _created, as_json=as_json)
    return 0


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


def comment(call: TypedCommand, *, as_json: JsonFlag = False) -> int:
    """Comment on an open or failed task; the last @agent or @user in it becomes the assignee."""
    print_answer(call.perform(), _noted, as_json=as_json)
    return 0


def _noted(written: Doc) -> str:
    say(written["note"])
    return ""


def list_runs(
    task: Annotated[
        str | None, typer.Option("--task", help="The task's id.", autocompletion=listed("tasks:id"))
    ] = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """List the runs on a task, oldest first."""
    if task is None:
        raise Invalid("--task is required", code="E-USAGE", next="fleet run ls --task TASK")
    from control_plane.contract.declarations import task_runs

    found = client(org).call(task_runs.RUNS, task_id=task)
    if as_json:
        print_json(found)
        return
    columns = ("RUN", "AGENT", "STATUS", "DRONE", "COST", "TIME", "BRANCH", "ACTIVITY OR REASON")
    rows = [
        (
            run["run_id"],
            run["agent"],
            run["status"],
            run["drone"],
            cost(run["cost_usd"]),
            duration_label(round(run["duration_seconds"] * 1000)) if run["duration_seconds"] is not None else None,
            run["branch"],
            run["doing"] or run["reason"],
        )
        for run in found
    ]
    print_table(columns, rows, empty=f"no runs of {task} yet; reason: fleet task show {task}")


def show_run(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")],
    full: Annotated[bool, typer.Option("--full", help="Show complete outputs instead of 500 characters.")] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Show a run: outcome, cost and steps."""
    from control_plane.contract.declarations import task_runs

    run = client(org).call(task_runs.SHOW_RUN, run_id=run_id)
    from control_plane.cli.task_text import run_text

    print_answer(run, partial(run_text, full=full), as_json=as_json)


def _declared() -> Mapping[str, Operation]:
    from control_plane.contract.declarations import tasks

    return {"task create": tasks.ADD, "task comment": tasks.COMMENT, "comment": tasks.COMMENT}


CREATE = ByHandCommand(
    "task create",
    _declared,
    create,
    examples=("fleet task create 'Add a currency to prices' --project shop",),
    arguments=("title",),
)
COMMENT = ByHandCommand(
    "task comment",
    _declared,
    comment,
    examples=("fleet task comment PAYM-0001 '@backend please add a test'",),
    arguments=("text",),
)
SHORT_COMMENT = ByHandCommand(
    "comment",
    _declared,
    comment,
    PANEL,
    ("fleet comment PAYM-0001 '@tester does this hold?'", "fleet comment PAYM-0001 - < findings.md"),
    arguments=("text",),
)
