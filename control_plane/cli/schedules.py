"""`fleet schedule …`: tasks at the times of a cron line."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from control_plane.cli.answers import short_time
from control_plane.cli.connection import Org, client
from control_plane.cli.task_options import (
    PANEL,
    Assignee,
    CostLimit,
    Description,
    DescriptionFile,
    MaxIterations,
    MaxRunSeconds,
    ModeOption,
    Priority,
    ProjectOption,
    Title,
    task_given,
    task_lines,
)
from shared.errors import Invalid
from shared.terminal.command_line import JsonFlag, confirmed, examples, group, print_json, print_table, put, say

Doc = dict[str, Any]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")]
Cron = Annotated[str | None, typer.Option("--cron", help="Minute, hour, day, month, weekday: '0 6 * * 1-5'.")]
Timezone = Annotated[str | None, typer.Option("--timezone", help="A name of the IANA database; default: UTC.")]
Missed = Annotated[
    str | None, typer.Option("--missed", help="once (default): one task for all that was missed; skip: none.")
]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    commands = group("schedule", "Make tasks at set times.")
    for name, command, example in (
        ("add", add, "fleet schedule add nightly --cron '0 2 * * *' --timezone Europe/Berlin --title 'Tidy {{date}}'"),
        ("ls", list_, "fleet schedule ls"),
        ("show", show, "fleet schedule show nightly"),
        ("edit", edit, "fleet schedule edit nightly --cron '30 2 * * *'"),
        ("run", run, "fleet schedule run nightly"),
        ("rm", remove, "fleet schedule rm nightly"),
    ):
        commands.command(name, epilog=examples(example))(command)
    app.add_typer(commands, rich_help_panel=PANEL)


def add(
    name: Name,
    cron: Cron = None,
    timezone: Timezone = None,
    missed: Missed = None,
    title: Title = None,
    description: Description = None,
    description_file: DescriptionFile = None,
    project: ProjectOption = None,
    assignee: Assignee = None,
    mode: ModeOption = None,
    priority: Priority = None,
    max_iterations: MaxIterations = None,
    cost_limit: CostLimit = None,
    max_run_seconds: MaxRunSeconds = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Add a schedule. {{date}} and {{time}} in title and description are filled in for each task."""
    task = task_given(locals())
    if cron is None or "title" not in task:
        raise Invalid(
            "--cron and --title are both needed",
            code="E-USAGE",
            next=f"fleet schedule add {name} --cron '0 6 * * 1-5' --title 'What to do'",
        )
    request = {"name": name, "cron": cron, "timezone": timezone, "missed": missed, "task": task}
    schedule = client(org).add_schedule({key: value for key, value in request.items() if value is not None})
    _tell(schedule, as_json=as_json)


def list_(as_json: JsonFlag = False, org: Org = None) -> None:
    """List the schedules."""
    found = client(org).list_schedules()
    if as_json:
        print_json(found)
        return
    rows = [
        (s["name"], s["cron"], s["timezone"], short_time(s["next_at"]) or "off", s["last_task"], s["last_error"][:60])
        for s in found
    ]
    columns = ("SCHEDULE", "CRON", "TIME ZONE", "NEXT", "LAST TASK", "LAST ERROR")
    print_table(columns, rows, empty="no schedules; fleet schedule add makes one")


def show(name: Name, as_json: JsonFlag = False, org: Org = None) -> None:
    """Show a schedule, with the next times at which it makes a task."""
    _tell(client(org).show_schedule(name), as_json=as_json)


def edit(
    name: Name,
    cron: Cron = None,
    timezone: Timezone = None,
    missed: Missed = None,
    enabled: Annotated[bool | None, typer.Option("--on/--off", help="Switch it on, or off.")] = None,
    title: Title = None,
    description: Description = None,
    description_file: DescriptionFile = None,
    project: ProjectOption = None,
    assignee: Assignee = None,
    mode: ModeOption = None,
    priority: Priority = None,
    max_iterations: MaxIterations = None,
    cost_limit: CostLimit = None,
    max_run_seconds: MaxRunSeconds = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Change a schedule; only what is named changes. Its next time is then reckoned from now on."""
    task = task_given(locals())
    fleet = client(org)
    given: Doc = {"cron": cron, "timezone": timezone, "missed": missed, "enabled": enabled}
    changes = {key: value for key, value in given.items() if value is not None}
    if task:
        changes["task"] = {**fleet.show_schedule(name)["task"], **task}
    _tell(fleet.edit_schedule(name, changes), as_json=as_json)


def run(name: Name, as_json: JsonFlag = False, org: Org = None) -> None:
    """Make the schedule's task now, beside its times."""
    task = client(org).run_schedule(name)
    if as_json:
        print_json(task)
        return
    put(f"{task['id']}\n")
    say(f"  next  fleet task follow {task['id']}")


def remove(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Remove a schedule; the tasks that it made stay."""
    confirmed(f"Remove schedule {name}?", yes=yes)
    schedule = client(org).remove_schedule(name)
    if as_json:
        print_json(schedule)
    else:
        say(f"schedule {name} is removed")


def _tell(schedule: Doc, *, as_json: bool) -> None:
    if as_json:
        print_json(schedule)
        return
    missed = "one task for all that was missed" if schedule["missed"] == "once" else "what was missed is left out"
    last = f"{schedule['last_task']} at {short_time(schedule['last_at'])}" if schedule["last_task"] else "none yet"
    lines = [
        f"schedule  {schedule['name']}  ({'on' if schedule['enabled'] else 'off'})",
        f"times     {schedule['cron']}  in {schedule['timezone']}; {missed}",
        *(f"{'next' if n == 0 else '':<10}{short_time(at)}" for n, at in enumerate(schedule["upcoming"])),
        *task_lines(schedule["task"]),
        f"last task {last}",
        *([f"error     {schedule['last_error']}"] if schedule["last_error"] else []),
    ]
    put("\n".join(lines) + "\n")
