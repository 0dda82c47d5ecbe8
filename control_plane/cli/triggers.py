"""`fleet trigger …`: tasks from what happens at a code host."""

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
from shared.terminal.command_line import (
    JsonFlag,
    confirmed,
    examples,
    group,
    print_json,
    print_table,
    put,
    read_secret,
    say,
)

Doc = dict[str, Any]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The trigger's name.")]
Secret = Annotated[
    str | None, typer.Option("--secret", help="`-` reads it from stdin; default of add: one is made and shown once.")
]
Event = Annotated[
    list[str] | None, typer.Option("--event", help="issues.opened, push, ...; repeats. Default of add: new issues.")
]
Every = Annotated[bool, typer.Option("--every-event", help="Each event makes a task.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    commands = group("trigger", "Make tasks of what happens at GitHub, GitLab, Gitea and others.")
    for name, command, example in (
        ("add", add, "fleet trigger add issues --kind github --project shop"),
        ("ls", list_, "fleet trigger ls"),
        ("show", show, "fleet trigger show issues"),
        ("edit", edit, "fleet trigger edit issues --event issues.opened --event push"),
        ("rm", remove, "fleet trigger rm issues"),
    ):
        commands.command(name, epilog=examples(example))(command)
    app.add_typer(commands, rich_help_panel=PANEL)


def add(
    name: Name,
    kind: Annotated[str | None, typer.Option("--kind", help="github, gitlab, gitea or standard.")] = None,
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
    """Add a trigger. Title and description are templates over `payload` and `event`; by default the kind's own."""
    if kind is None:
        raise Invalid("--kind is missing", code="E-USAGE", next=f"fleet trigger add {name} --kind github")
    request: Doc = {"name": name, "kind": kind, "task": {"title": "", **task_given(locals())}}
    trigger = client(org).add_trigger({**request, **_secret(secret), **_events(event, every_event)})
    _tell(trigger, as_json=as_json)
    if not as_json:
        say("Enter this address and this secret at the code host, as JSON; the secret is not shown again.")


def list_(as_json: JsonFlag = False, org: Org = None) -> None:
    """List the triggers."""
    found = client(org).list_triggers()
    if as_json:
        print_json(found)
        return
    rows = [
        (
            t["name"] if t["enabled"] else f"{t['name']} (off)",
            t["kind"],
            _events_text(t),
            t["last_task"],
            t["last_error"][:60],
        )
        for t in found
    ]
    columns = ("TRIGGER", "KIND", "EVENTS", "LAST TASK", "LAST ERROR")
    print_table(columns, rows, empty="no triggers; fleet trigger add makes one")


def show(name: Name, as_json: JsonFlag = False, org: Org = None) -> None:
    """Show a trigger."""
    _tell(client(org).show_trigger(name), as_json=as_json)


def edit(
    name: Name,
    secret: Secret = None,
    event: Event = None,
    every_event: Every = False,
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
    """Change a trigger; only what is named changes. Another secret counts at once."""
    task = task_given(locals())
    fleet = client(org)
    changes: Doc = {**_secret(secret), **_events(event, every_event)}
    if enabled is not None:
        changes["enabled"] = enabled
    if task:
        changes["task"] = {"title": "", **fleet.show_trigger(name)["task"], **task}
    _tell(fleet.edit_trigger(name, changes), as_json=as_json)


def remove(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Remove a trigger; the tasks that it made stay."""
    confirmed(f"Remove trigger {name}?", yes=yes)
    trigger = client(org).remove_trigger(name)
    if as_json:
        print_json(trigger)
    else:
        say(f"trigger {name} is removed")


def _secret(secret: str | None) -> Doc:
    return {} if secret is None else {"secret": read_secret(secret, "secret")}


def _events(named: list[str] | None, every: bool) -> Doc:
    if every and named:
        raise Invalid("--every-event and --event were both given", code="E-USAGE", next="leave one of them out")
    if every:
        return {"events": []}
    return {"events": named} if named else {}


def _events_text(trigger: Doc) -> str:
    return ", ".join(trigger["events"]) or "every event"


def _tell(trigger: Doc, *, as_json: bool) -> None:
    if as_json:
        print_json(trigger)
        return
    last = f"{trigger['last_task']} at {short_time(trigger['last_at'])}" if trigger["last_task"] else "none yet"
    lines = [
        f"trigger   {trigger['name']}  ({'on' if trigger['enabled'] else 'off'})",
        f"kind      {trigger['kind']}",
        f"address   {trigger['url']}",
        *([f"secret    {trigger['secret']}"] if trigger["secret"] else []),
        f"events    {_events_text(trigger)}",
        *task_lines(trigger["task"]),
        f"last task {last}",
        *([f"error     {trigger['last_error']}"] if trigger["last_error"] else []),
    ]
    put("\n".join(lines) + "\n")
