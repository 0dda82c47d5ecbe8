"""`fleet schedule …`: the commands and texts that are not derived."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from control_plane.cli.answers import print_answer, short_time
from control_plane.cli.common_options import Org
from control_plane.cli.completion import listed
from control_plane.cli.connection import client
from control_plane.cli.task_options import (
    Assignee,
    CostLimit,
    Description,
    DescriptionFile,
    Enabled,
    MaxIterations,
    MaxRunSeconds,
    ModeOption,
    Priority,
    ProjectOption,
    Title,
    last_task,
    named_of,
    task_given,
    task_lines,
)
from shared.terminal.command_line import JsonFlag, examples

Doc = dict[str, Any]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the schedule.", autocompletion=listed("schedules:name"))
]
Cron = Annotated[str | None, typer.Option("--cron", help="Minute, hour, day, month, weekday: '0 6 * * 1-5'.")]
Timezone = Annotated[str | None, typer.Option("--timezone", help="IANA time zone (default: UTC).")]
Missed = Annotated[
    str | None,
    typer.Option("--missed", help="Missed times: once (default) creates one task for all of them, skip creates none."),
]


def add_others(group: typer.Typer) -> None:
    """Register the commands."""
    times = "--cron '0 2 * * *' --timezone Europe/Berlin"
    group.command("add", epilog=examples(f"fleet schedule add nightly {times} --title 'Tidy {{{{date}}}}'"))(add)
    group.command("edit", epilog=examples("fleet schedule edit nightly --cron '30 2 * * *'"))(edit)


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
    given = locals()
    from control_plane.declarations import schedules
    from control_plane.validation.invalid_requests import checked

    fields = {**named_of(given, "name", "cron", "timezone", "missed"), "task": task_given(given)}
    request = checked(schedules.ScheduleRequest, fields, form="fleet schedule add --help")
    print_answer(client(org).call(schedules.ADD, request), schedule_text, as_json=as_json)


def edit(
    name: Name,
    cron: Cron = None,
    timezone: Timezone = None,
    missed: Missed = None,
    enabled: Enabled = None,
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
    """Change a schedule; only the given options change. The next time is calculated from now."""
    given = locals()
    from control_plane.declarations import schedules
    from control_plane.validation.invalid_requests import checked

    fleet, task = client(org), task_given(given)
    changes = named_of(given, "cron", "timezone", "missed", "enabled")
    if task:
        changes["task"] = {**fleet.call(schedules.SHOW, name=name)["task"], **task}
    request = checked(schedules.ScheduleEdit, changes, form="fleet schedule edit --help")
    print_answer(fleet.call(schedules.EDIT, request, name=name), schedule_text, as_json=as_json)


def made_task(task: Doc) -> str:
    """The id of the task that a schedule made."""
    return str(task["id"])


def schedule_text(schedule: Doc) -> str:
    """A schedule as text for people."""
    missed = "one task for all missed times" if schedule["missed"] == "once" else "missed times are skipped"
    lines = [
        f"schedule  {schedule['name']}  ({'on' if schedule['enabled'] else 'off'})",
        f"times     {schedule['cron']}  in {schedule['timezone']}; {missed}",
        *(f"{'next' if n == 0 else '':<10}{short_time(at)}" for n, at in enumerate(schedule["upcoming"])),
        *task_lines(schedule["task"]),
        *last_task(schedule),
    ]
    return "\n".join(lines)
