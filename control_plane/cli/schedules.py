"""`fleet schedule …`: the commands and texts that are not derived."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from control_plane.cli.answers import print_answer, short_time
from control_plane.cli.derived_commands import ByHandCommand, TypedCommand
from control_plane.cli.task_options import DescriptionFile, last_task, task_fields, task_lines
from shared.terminal.command_line import JsonFlag

if TYPE_CHECKING:
    from collections.abc import Mapping

    from control_plane.contract.declarations.operation import Operation

Doc = dict[str, Any]


def add_others(group: typer.Typer) -> None:
    """Register the commands."""
    ADD.add_to(group)
    EDIT.add_to(group)


def add(call: TypedCommand, *, description_file: DescriptionFile = None, as_json: JsonFlag = False) -> int:
    """Add a schedule. {{date}} and {{time}} in title and description are filled in for each task."""
    task_fields(call, description_file)
    print_answer(call.perform(), schedule_text, as_json=as_json)
    return 0


def edit(call: TypedCommand, *, description_file: DescriptionFile = None, as_json: JsonFlag = False) -> int:
    """Change a schedule; only the given options change. The next time is calculated from now."""
    from control_plane.contract.declarations.schedules import SHOW

    if task := task_fields(call, description_file):
        call.fields["task"] = {**call.fleet.call(SHOW, None, **call.names)["task"], **task}
    print_answer(call.perform(), schedule_text, as_json=as_json)
    return 0


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


def _declared() -> Mapping[str, Operation]:
    from control_plane.contract.declarations import schedules

    return {"schedule add": schedules.ADD, "schedule edit": schedules.EDIT}


_TIMES = "--cron '0 2 * * *' --timezone Europe/Berlin"
ADD = ByHandCommand(
    "schedule add",
    _declared,
    add,
    examples=(f"fleet schedule add nightly {_TIMES} --title 'Tidy {{{{date}}}}'",),
    arguments=("name",),
)
EDIT = ByHandCommand("schedule edit", _declared, edit, examples=("fleet schedule edit nightly --cron '30 2 * * *'",))
