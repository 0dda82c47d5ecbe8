"""`fleet inbox, dismiss`: everything that waits for you, and what needs no action."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from control_plane.cli.answers import for_people, short_time
from control_plane.cli.common_options import Org
from control_plane.cli.completion import choices
from control_plane.cli.connection import client
from shared.terminal.command_line import JsonFlag, examples, print_json, put, say
from shared.terminal.output import paint, printable
from shared.terminal.watch import WatchFlag, watched

PANEL = "Orders"
Doc = dict[str, Any]
DISMISSED = frozenset({"reply", "checks", "spent", "race"})
"""Kinds that may be dismissed: nothing waits for a decision."""
MAX_LINES = 12
"""Lines of a text; `--json` has all of it."""


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    shown = examples("fleet inbox", "fleet inbox --kind question", "fleet inbox --mine --json")
    app.command("inbox", rich_help_panel=PANEL, epilog=shown)(inbox)
    shown = examples("fleet dismiss checks:ORDER", "fleet dismiss race:RACE --undo")
    app.command("dismiss", rich_help_panel=PANEL, epilog=shown)(dismiss)


def inbox(
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            help="Only items of this kind.",
            autocompletion=choices("control_plane.contract.declarations.inbox:InboxKind"),
        ),
    ] = None,
    mine: Annotated[bool, typer.Option("--mine", help="Only what you submitted or own.")] = False,
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Of all organizations in which your token may act.")
    ] = False,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=1000, help="Maximum number of results, nearest deadline first.")
    ] = 50,
    watch: WatchFlag = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """List what waits for you: approvals, questions, failed checks, tasks, races, used up budgets, drones, models."""
    from control_plane.contract.declarations.inbox import LIST, InboxFilter
    from control_plane.contract.validation.invalid_requests import checked

    fields = {"kind": kind, "mine": mine, "everywhere": everywhere, "limit": limit}
    wanted, fleet = checked(InboxFilter, fields, form="fleet inbox --help"), client(org)
    show = print_json if as_json else _print_items
    watched(lambda: show(fleet.call(LIST, wanted)), watch=watch, as_json=as_json)


def dismiss(
    item_id: Annotated[
        str, typer.Argument(metavar="ITEM", help="The item's id in the inbox, such as checks:ORDER or race:RACE.")
    ],
    undo: Annotated[bool, typer.Option("--undo", help="Put it back; a note (memory:ID) waits again.")] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Take an ended order or a race out of the inbox, for all users."""
    from control_plane.contract.declarations.inbox import DISMISS, RESTORE

    item = client(org).call(RESTORE if undo else DISMISS, item_id=item_id)
    if as_json:
        print_json(item)
    else:
        say(f"{item['id']} {'is in the inbox again' if undo else 'dismissed'}")


def inbox_text(items: list[Doc]) -> str:
    """The items, each with its text and the command that acts."""
    return "\n".join(line for item in items for line in (*_item_lines(item), "")) or "nothing waits for you\n"


def _print_items(items: list[Doc]) -> None:
    put(inbox_text(for_people(items)))


def _item_lines(item: Doc) -> list[str]:
    about = item["task"] or item["order"] or item["race"] or ""
    where = f"project {item['project']}" if item["project"] else ""
    until = f"until {short_time(item['deadline'])}" if item["deadline"] else f"since {short_time(item['since'])}"
    head = "  ".join(filter(None, (item["kind"], about, item["title"])))
    note = ", ".join(filter(None, (where, until, "" if item["may_answer"] else "requires a higher role")))
    return [
        f"{paint(head, 'bold', sys.stdout)}  ({note})",
        *_text_lines(item),
        f"  next  {item['next']}",
        *([f"  done  fleet dismiss {item['id']}"] if item["kind"] in DISMISSED else []),
    ]


def _text_lines(item: Doc) -> list[str]:
    from shared.terminal.step_lines import command_lines, question_lines

    if item["kind"] == "question":
        return question_lines(item["text"], item["choices"], item["default"])
    lines = [f"  {line}" for line in printable(item["text"]).splitlines() if line.strip()]
    shown = lines if len(lines) <= MAX_LINES else ["  …", *lines[-MAX_LINES:]]
    return [*shown, *command_lines((item["waiting_for"] or {}).get("command", ""))]
