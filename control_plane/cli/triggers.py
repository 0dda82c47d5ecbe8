"""`fleet trigger …`: the commands and texts that are not derived."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from control_plane.cli.answers import print_answer
from control_plane.cli.common_options import Org
from control_plane.cli.completion import choices, listed
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
from shared.errors import Invalid
from shared.terminal.command_line import JsonFlag, examples, read_secret, say

Doc = dict[str, Any]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the trigger.", autocompletion=listed("triggers:name"))
]
Secret = Annotated[
    str | None, typer.Option("--secret", help="`-` reads it from stdin (default of add: generated and shown once).")
]
Event = Annotated[
    list[str] | None, typer.Option("--event", help="issues.opened, push, ...; repeats (default of add: new issues).")
]
Every = Annotated[bool, typer.Option("--every-event", help="Create a task for every event.")]


def add_others(group: typer.Typer) -> None:
    """Register the commands."""
    group.command("add", epilog=examples("fleet trigger add issues --kind github --project shop"))(add)
    group.command("edit", epilog=examples("fleet trigger edit issues --event issues.opened --event push"))(edit)


def add(
    name: Name,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            help="github, gitlab, gitea or standard.",
            autocompletion=choices("control_plane.declarations.triggers:TriggerKind"),
        ),
    ] = None,
    secret: Secret = None,
    event: Event = None,
    every_event: Every = False,
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
    """Add a trigger. Title and description are templates with `payload` and `event` (default: those of the kind)."""
    given = locals()
    from control_plane.declarations import triggers
    from control_plane.validation.invalid_requests import checked

    fields = {**named_of(given, "name", "kind"), **_own(given), "task": {"title": "", **task_given(given)}}
    request = checked(triggers.TriggerRequest, fields, form="fleet trigger add --help")
    print_answer(client(org).call(triggers.ADD, request), trigger_text, as_json=as_json)
    if not as_json:
        say("Enter this address and secret at the code host, with content type JSON. The secret is not shown again.")


def edit(
    name: Name,
    secret: Secret = None,
    event: Event = None,
    every_event: Every = False,
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
    """Change a trigger; only the given options change. A new secret takes effect immediately."""
    given = locals()
    from control_plane.declarations import triggers
    from control_plane.validation.invalid_requests import checked

    fleet, task = client(org), task_given(given)
    changes = {**named_of(given, "enabled"), **_own(given)}
    if task:
        changes["task"] = {"title": "", **fleet.call(triggers.SHOW, name=name)["task"], **task}
    request = checked(triggers.TriggerEdit, changes, form="fleet trigger edit --help")
    print_answer(fleet.call(triggers.EDIT, request, name=name), trigger_text, as_json=as_json)


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


def _own(given: Doc) -> Doc:
    """Secret and events, if given."""
    if given["every_event"] and given["event"]:
        raise Invalid("--every-event and --event cannot be used together", code="E-USAGE", next="leave one of them out")
    events = {"events": given["event"] or []} if given["every_event"] or given["event"] else {}
    return {**events, **({} if given["secret"] is None else {"secret": read_secret(given["secret"], "secret")})}
