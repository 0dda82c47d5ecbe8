"""`fleet task …` and `fleet comment`: threads that agents and people work on."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from control_plane.cli.connection import Org, client
from control_plane.cli.orders import cost
from control_plane.cli.text_file import text_of
from shared.durations import duration_label
from shared.errors import Invalid
from shared.states import TaskStatus
from shared.terminal.command_line import JsonFlag, examples, group, print_json, print_table, put, say

PANEL = "Teams"
Doc = dict[str, Any]
TaskId = Annotated[str, typer.Argument(metavar="TASK", help="The task's id, for example PAYM-0001.")]
Text = Annotated[str, typer.Argument(metavar="TEXT", help="What to write; `-` reads it from stdin. @name hands over.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    commands = group("task", "Give work to a team: tasks are threads that agents and people hand to each other.")
    for name, command, example in (
        ("create", create, "fleet task create 'Add a currency to prices' --project shop"),
        ("ls", list_, "fleet task ls --status open --assignee user"),
        ("show", show, "fleet task show PAYM-0001"),
        ("follow", follow, "fleet task follow PAYM-0001"),
        ("comment", comment, "fleet task comment PAYM-0001 '@backend please add a test'"),
        ("assign", assign, "fleet task assign PAYM-0001 backend"),
        ("preempt", preempt, "fleet task preempt PAYM-0001"),
        ("done", done, "fleet task done PAYM-0001"),
        ("reopen", reopen, "fleet task reopen PAYM-0001"),
        ("retry", retry, "fleet task retry PAYM-0001 --assign backend"),
        ("cancel", cancel, "fleet task cancel PAYM-0001 --reason 'no longer needed'"),
    ):
        commands.command(name, epilog=examples(example))(command)
    app.add_typer(commands, rich_help_panel=PANEL)
    shown = examples("fleet comment PAYM-0001 '@tester does this hold?'", "fleet comment PAYM-0001 - < findings.md")
    app.command("comment", rich_help_panel=PANEL, epilog=shown)(comment)


def create(
    title: Annotated[str, typer.Argument(metavar="TITLE", help="What is to be done, in one line.")],
    description: Annotated[
        str | None, typer.Option("--description", help="What agents are told; default: the title.")
    ] = None,
    description_file: Annotated[
        str | None, typer.Option("--description-file", metavar="FILE|-", help="The description from a file, or stdin.")
    ] = None,
    project: Annotated[str | None, typer.Option("--project", help="The project's slug.")] = None,
    assignee: Annotated[
        str | None, typer.Option("--assignee", help="An agent, or user; default: the first agent without a boss.")
    ] = None,
    mode: Annotated[str, typer.Option("--mode", help="plan, build, test, ship or develop.")] = "build",
    priority: Annotated[int, typer.Option("--priority", help="-100 to 100; higher begins first.")] = 0,
    max_iterations: Annotated[int | None, typer.Option("--max-iterations", help="For each run; 0: no limit.")] = None,
    cost_limit: Annotated[float | None, typer.Option("--cost-limit", metavar="USD", help="For each run.")] = None,
    max_run_seconds: Annotated[float | None, typer.Option("--max-run-seconds", help="For each run.")] = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Create a task; its agent begins as soon as it may."""
    if description is not None and description_file is not None:
        raise Invalid("two descriptions were given", code="E-USAGE", next="leave out --description")
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
    task = client(org).create_task(request)
    if as_json:
        print_json(task)
        return
    put(f"{task['id']}\n")
    say(task["note"])
    say(f"  next  fleet task follow {task['id']}")


def list_(
    status: Annotated[str | None, typer.Option("--status", help="Only tasks in this state.")] = None,
    assignee: Annotated[str | None, typer.Option("--assignee", help="Only tasks of this agent, or of user.")] = None,
    project: Annotated[str | None, typer.Option("--project", help="Only tasks of this project.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many, newest first.")] = 50,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """List tasks, newest first."""
    if status is not None and status not in set(TaskStatus):
        raise Invalid(
            f"tasks have no state {status[:40]!r}",
            code="E-TASK-STATUS",
            why=f"the states are {', '.join(TaskStatus)}",
            next="fleet task ls --status open",
        )
    found = client(org).list_tasks(status=status, assignee=assignee, project=project, limit=limit)
    if as_json:
        print_json(found)
        return
    columns = ("TASK", "STATUS", "ASSIGNEE", "PROJECT", "RUNS", "COST", "TIME", "TITLE", "REASON")
    rows = [
        (
            task["id"],
            task["status"],
            task["assignee"],
            task["project"],
            task["totals"]["runs"],
            cost(task["totals"]["cost_usd"]),
            duration_label(task["totals"]["duration_ms"]),
            _short(task["title"], 40),
            _short(task["reason"], 60),
        )
        for task in found
    ]
    print_table(columns, rows, empty="no tasks; fleet task create 'TITLE' makes one")


def show(task_id: TaskId, as_json: JsonFlag = False, org: Org = None) -> None:
    """Show a task: where it stands, and everything that was written and run, in order."""
    task = client(org).show_task(task_id)
    if as_json:
        print_json(task)
        return
    from control_plane.cli.task_text import task_text

    put(task_text(task))


def follow(task_id: TaskId, as_json: JsonFlag = False, org: Org = None) -> int:
    """Watch a task until it waits for you (exit 0), is done (0), failed or canceled (1)."""
    from control_plane.cli.task_follow import follow_task

    return follow_task(client(org), task_id, as_json=as_json)


def comment(task_id: TaskId, text: Text, as_json: JsonFlag = False, org: Org = None) -> None:
    """Write on an open or failed task; the last @agent or @user in it decides whose turn it is."""
    written = client(org).comment_task(task_id, text_of("-") if text == "-" else text)
    if as_json:
        print_json(written)
    else:
        say(written["note"])


def assign(
    task_id: TaskId,
    assignee: Annotated[str, typer.Argument(metavar="AGENT", help="An agent, or user.")],
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Give an open or failed task to an agent, or to the user."""
    _tell(client(org).assign_task(task_id, assignee), as_json=as_json)


def preempt(task_id: TaskId, as_json: JsonFlag = False, org: Org = None) -> None:
    """Take a task from the run that is at work on it; it is yours then."""
    _tell(client(org).preempt_task(task_id), as_json=as_json)


def done(task_id: TaskId, as_json: JsonFlag = False, org: Org = None) -> None:
    """Mark a task that is with you as done."""
    _tell(client(org).done_task(task_id), as_json=as_json)


def reopen(task_id: TaskId, as_json: JsonFlag = False, org: Org = None) -> None:
    """Open a done or failed task again; it is yours then."""
    _tell(client(org).reopen_task(task_id), as_json=as_json)


def retry(
    task_id: TaskId,
    assignee: Annotated[
        str | None, typer.Option("--assign", "--assignee", help="The agent; default: the one that ran last.")
    ] = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Give a done or failed task to an agent again."""
    _tell(client(org).retry_task(task_id, assignee), as_json=as_json)


def cancel(
    task_id: TaskId,
    reason: Annotated[str, typer.Option("--reason", help="Why, for those who read it later.")] = "",
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """End a task for good, and its run with it."""
    _tell(client(org).cancel_task(task_id, reason), as_json=as_json)


def _tell(task: Doc, *, as_json: bool) -> None:
    if as_json:
        print_json(task)
    else:
        say(task["note"])


def _short(text: str, length: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"
