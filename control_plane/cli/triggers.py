"""`fleet trigger …`: the commands and texts that are not derived."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from control_plane.cli.answers import print_answer
from control_plane.cli.derived_commands import ByHandCommand, TypedCommand
from control_plane.cli.task_options import DescriptionFile, last_task, task_fields, task_lines
from shared.errors import Invalid
from shared.terminal.command_line import JsonFlag, read_secret, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from control_plane.contract.declarations.operation import Operation

Doc = dict[str, Any]
Secret = Annotated[
    str | None, typer.Option("--secret", help="`-` reads it from stdin (default of add: generated and shown once).")
]
Event = Annotated[
    list[str] | None, typer.Option("--event", help="issues.opened, push, ...; repeats (default of add: new issues).")
]
Every = Annotated[bool, typer.Option("--every-event", help="Create a task for every event.")]


def add_others(group: typer.Typer) -> None:
    """Register the commands."""
    ADD.add_to(group)
    EDIT.add_to(group)


def add(
    call: TypedCommand,
    *,
    secret: Secret = None,
    event: Event = None,
    every_event: Every = False,
    description_file: DescriptionFile = None,
    as_json: JsonFlag = False,
) -> int:
    """Add a trigger. Title and description are templates with `payload` and `event` (default: those of the kind)."""
    task_fields(call, description_file)
    call.fields.setdefault("task", {}).setdefault("title", "")
    _add_own(call.fields, secret, event, every_event=every_event)
    print_answer(call.perform(), trigger_text, as_json=as_json)
    if not as_json:
        say("Enter this address and secret at the code host, with content type JSON. The secret is not shown again.")
    return 0


def edit(
    call: TypedCommand,
    *,
    secret: Secret = None,
    event: Event = None,
    every_event: Every = False,
    description_file: DescriptionFile = None,
    as_json: JsonFlag = False,
) -> int:
    """Change a trigger; only the given options change. A new secret takes effect immediately."""
    from control_plane.contract.declarations.triggers import SHOW

    if task := task_fields(call, description_file):
        call.fields["task"] = {"title": "", **call.fleet.call(SHOW, None, **call.names)["task"], **task}
    _add_own(call.fields, secret, event, every_event=every_event)
    print_answer(call.perform(), trigger_text, as_json=as_json)
    return 0


def trigger_text(trigger: Doc) -> str:
    """A trigger as text for people."""
    lines = [
        f"trigger   {trigger['name']}  ({'on' if trigger['enabled'] else 'off'})",
        f"kind      {trigger['kind']}",
        f"address   {trigger['url']}",
        *([f"secret    {trigger['secret']}"] if trigger["secret"] else []),
        f"events    {', '.join(trigger['events']) or 'every event'}",
        *task_lines(trigger["task"]),
        *last_task(trigger),
    ]
    return "\n".join(lines)


def _add_own(fields: Doc, secret: str | None, events: list[str] | None, *, every_event: bool) -> None:
    """Secret and events, if given."""
    if every_event and events:
        raise Invalid("--every-event and --event cannot be used together", code="E-USAGE", next="leave one of them out")
    if every_event or events:
        fields["events"] = events or []
    if secret is not None:
        fields["secret"] = read_secret(secret, "secret")


def _declared() -> Mapping[str, Operation]:
    from control_plane.contract.declarations import triggers

    return {"trigger add": triggers.ADD, "trigger edit": triggers.EDIT}


_OWN = ("secret", "events")
ADD = ByHandCommand(
    "trigger add",
    _declared,
    add,
    examples=("fleet trigger add issues --kind github --project shop",),
    arguments=("name",),
    without=_OWN,
)
EDIT = ByHandCommand(
    "trigger edit",
    _declared,
    edit,
    examples=("fleet trigger edit issues --event issues.opened --event push",),
    without=_OWN,
)
