"""`fleet webhook …`: who is told of what people wait for."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from control_plane.cli.connection import Org, client
from control_plane.cli.task_options import PANEL, local_time
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
Name = Annotated[str, typer.Argument(metavar="NAME", help="The webhook's name.")]
Url = Annotated[str | None, typer.Option("--url", help="Where messages go: an http or https address.")]
Secret = Annotated[
    str | None, typer.Option("--secret", help="whsec_...; `-` reads it from stdin; default of add: one is made.")
]
Event = Annotated[
    list[str] | None, typer.Option("--event", help="order.failed, task.waiting, ...; repeats. Default of add: all.")
]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    commands = group("webhook", "Tell other programs of what people wait for.")
    for name, command, example in (
        ("add", add, "fleet webhook add chat --url https://chat.example.org/fleet --event task.waiting"),
        ("ls", list_, "fleet webhook ls"),
        ("show", show, "fleet webhook show chat"),
        ("edit", edit, "fleet webhook edit chat --on"),
        ("test", try_out, "fleet webhook test chat"),
        ("deliveries", deliveries, "fleet webhook deliveries chat"),
        ("rm", remove, "fleet webhook rm chat"),
    ):
        commands.command(name, epilog=examples(example))(command)
    app.add_typer(commands, rich_help_panel=PANEL)


def add(
    name: Name,
    url: Url = None,
    secret: Secret = None,
    event: Event = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Add a webhook. Messages are signed as Standard Webhooks says; the secret is shown this once."""
    if url is None:
        raise Invalid("--url is missing", code="E-USAGE", next=f"fleet webhook add {name} --url https://example.org/x")
    webhook = client(org).add_webhook({"name": name, "url": url, "events": event or [], **_secret(secret)})
    _tell(webhook, as_json=as_json)
    if not as_json:
        say(f"Give the receiver this secret; it is not shown again.\n  next  fleet webhook test {name}")


def list_(as_json: JsonFlag = False, org: Org = None) -> None:
    """List the webhooks."""
    found = client(org).list_webhooks()
    if as_json:
        print_json(found)
        return
    rows = [
        (
            w["name"] if w["enabled"] else f"{w['name']} (off)",
            w["url"],
            w["waiting"],
            local_time(w["last_at"]),
            w["last_error"][:60],
        )
        for w in found
    ]
    columns = ("WEBHOOK", "URL", "WAITING", "LAST", "LAST ERROR")
    print_table(columns, rows, empty="no webhooks; fleet webhook add makes one")


def show(name: Name, as_json: JsonFlag = False, org: Org = None) -> None:
    """Show a webhook."""
    _tell(client(org).show_webhook(name), as_json=as_json)


def edit(
    name: Name,
    url: Url = None,
    secret: Secret = None,
    event: Event = None,
    every_event: Annotated[bool, typer.Option("--every-event", help="Tell of everything.")] = False,
    enabled: Annotated[bool | None, typer.Option("--on/--off", help="Switch it on, or off.")] = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Change a webhook; only what is named changes."""
    if every_event and event:
        raise Invalid("--every-event and --event were both given", code="E-USAGE", next="leave one of them out")
    given: Doc = {"url": url, "events": [] if every_event else event or None, "enabled": enabled, **_secret(secret)}
    webhook = client(org).edit_webhook(name, {key: value for key, value in given.items() if value is not None})
    _tell(webhook, as_json=as_json)


def try_out(name: Name, as_json: JsonFlag = False, org: Org = None) -> int:
    """Send fleet.test now and say what the receiver answered; exit code 1 if it did not take it."""
    delivery = client(org).test_webhook(name)
    if as_json:
        print_json(delivery)
    elif delivery["error"]:
        put(f"not taken: {delivery['error']}\n")
    else:
        put(f"taken: the receiver answered {delivery['status_code']}\n")
    return 1 if delivery["error"] else 0


def deliveries(
    name: Name,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many, newest first.")] = 20,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """List the messages to a webhook: those that were taken, those that wait, those that were given up."""
    found = client(org).list_webhook_deliveries(name, limit=limit)
    if as_json:
        print_json(found)
        return
    rows = [
        (d["id"], d["event"], local_time(d["created_at"]), d["attempts"], _state(d), d["error"][:60]) for d in found
    ]
    columns = ("MESSAGE", "EVENT", "AT", "ATTEMPTS", "STATE", "ERROR")
    print_table(columns, rows, empty="no messages yet; fleet webhook test sends one")


def remove(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Remove a webhook; what waits for it is not sent any more."""
    confirmed(f"Remove webhook {name}?", yes=yes)
    webhook = client(org).remove_webhook(name)
    if as_json:
        print_json(webhook)
    else:
        say(f"webhook {name} is removed")


def _secret(secret: str | None) -> Doc:
    return {} if secret is None else {"secret": read_secret(secret, "secret")}


def _state(delivery: Doc) -> str:
    if not delivery["done_at"]:
        return f"again at {local_time(delivery['next_at'])}" if delivery["attempts"] else "waits"
    return "given up" if delivery["error"] else f"taken ({delivery['status_code']})"


def _tell(webhook: Doc, *, as_json: bool) -> None:
    if as_json:
        print_json(webhook)
        return
    lines = [
        f"webhook   {webhook['name']}  ({'on' if webhook['enabled'] else 'off'})",
        f"address   {webhook['url']}",
        *([f"secret    {webhook['secret']}"] if webhook["secret"] else []),
        f"events    {', '.join(webhook['events']) or 'every event'}",
        f"waiting   {webhook['waiting']}",
        *([f"failing   since {local_time(webhook['failing_since'])}"] if webhook["failing_since"] else []),
        *([f"error     {webhook['last_error']}"] if webhook["last_error"] else []),
    ]
    put("\n".join(lines) + "\n")
