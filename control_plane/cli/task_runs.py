"""`fleet run …`: what agents did on tasks."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from control_plane.cli.answers import cost, print_answer
from control_plane.cli.common_options import Org
from control_plane.cli.completion import listed
from control_plane.cli.connection import client
from shared.durations import duration_label
from shared.errors import Invalid
from shared.terminal.command_line import JsonFlag, examples, group, print_json, print_table

PANEL = "Teams"
Doc = dict[str, Any]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    commands = group("run", "Show runs of agents on tasks.")
    commands.command("ls", epilog=examples("fleet run ls --task PAYM-0001"))(list_)
    commands.command("show", epilog=examples("fleet run show RUN", "fleet run show RUN --full"))(show)
    app.add_typer(commands, rich_help_panel=PANEL)


def list_(
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


def show(
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
