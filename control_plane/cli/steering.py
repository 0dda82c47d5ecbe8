"""`fleet say, answer, approve, deny`: user input for a running order."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from control_plane.cli.answers import for_people
from control_plane.cli.derived_commands import ByHandCommand, TypedCommand
from shared.errors import Invalid
from shared.terminal.command_line import JsonFlag, print_json
from shared.terminal.command_line import say as tell
from shared.terminal.text_file import argument_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from control_plane.contract.declarations.operation import Operation

PANEL = "Orders"
Doc = dict[str, Any]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    for command in COMMANDS:
        command.add_to(app)


def say(call: TypedCommand, *, as_json: JsonFlag = False) -> int:
    """Send a message to an order; the model reads it after the current step."""
    fields = call.fields
    order = call.perform()
    when = (
        "when the model stops"
        if fields.get("after")
        else "now"
        if fields.get("interrupt")
        else "after the current step"
    )
    begun = order["status"] in {"running", "awaiting_approval"}
    return _print_update(order, f"Queued; read {when if begun else 'when the run starts'}", as_json=as_json)


def answer(
    call: TypedCommand,
    *,
    text: Annotated[
        str | None,
        typer.Argument(metavar="[TEXT|CHOICE]", help="The answer, or a choice or its number; `-` reads it from stdin."),
    ] = None,
    as_json: JsonFlag = False,
) -> int:
    """Answer the question of an order's agent. Without TEXT, show the question and ask."""
    call.fields["text"] = argument_text(text) if text is not None else _typed_answer(call)
    order = call.perform()
    return _print_update(order, order["reason"], as_json=as_json)


def _typed_answer(call: TypedCommand) -> str:
    """Show the question on the terminal, and read the answer, which then counts for this question only.

    Empty if the order asks none: its refusal says why. Raises Invalid where no question can be shown.
    """
    from control_plane.cli.rendering import question_text
    from control_plane.contract.declarations.orders import SHOW

    order = call.fleet.call(SHOW, order_id=call.names["order_id"])
    wait = order["waiting_for"]
    if not wait or wait["kind"] != "question":
        return ""
    if call.fields.get("call") not in {None, wait["call_id"]}:
        raise Invalid(
            "no answer was given",
            code="E-ANSWER-TEXT",
            why="only the question that has waited longest can be shown",
            next=f"fleet answer {order['id']} TEXT --call ID",
        )
    if not sys.stdin.isatty():
        raise Invalid(
            "no answer was given",
            code="E-ANSWER-TEXT",
            why="stdin is not a terminal",
            next=f"fleet answer {order['id']} TEXT",
        )
    call.names["order_id"] = order["id"]
    call.fields.update(call=wait["call_id"], digest=wait["digest"])
    shown = for_people(wait)
    for line in question_text(shown):
        tell(line)
    return str(typer.prompt("Answer", default=shown["default"], err=True))


def approve(call: TypedCommand, *, as_json: JsonFlag = False) -> int:
    """Approve what an order waits for: a command, or more money, steps or time."""
    order = call.perform()
    return _print_update(order, order["reason"], as_json=as_json)


def deny(call: TypedCommand, *, as_json: JsonFlag = False) -> int:
    """Deny what an order waits for. Without a command the run continues, without money it stops."""
    order = call.perform()
    return _print_update(order, order["reason"], as_json=as_json)


def _print_update(order: Doc, text: str, *, as_json: bool) -> int:
    if as_json:
        print_json(order)
    else:
        tell(f"{order['id']} {order['status']}: {text}")
        tell(f"  next  fleet follow {order['id']}")
    return 0


def _declared() -> Mapping[str, Operation]:
    from control_plane.contract.declarations.steering import ANSWER, APPROVE, DENY, SAY

    return {"say": SAY, "answer": ANSWER, "approve": APPROVE, "deny": DENY}


_FOR_PROGRAMS = ("digest",)
COMMANDS = (
    ByHandCommand(
        "say",
        _declared,
        say,
        PANEL,
        ("fleet say ORDER 'Use pytest, not unittest'", "fleet say ORDER --after - < next.md"),
        arguments=("text",),
    ),
    ByHandCommand(
        "answer",
        _declared,
        answer,
        PANEL,
        ("fleet answer ORDER 'Use PostgreSQL'", "fleet answer ORDER 2"),
        without=("text", *_FOR_PROGRAMS),
    ),
    ByHandCommand("approve", _declared, approve, PANEL, ("fleet approve ORDER --always",), without=_FOR_PROGRAMS),
    ByHandCommand("deny", _declared, deny, PANEL, ("fleet deny ORDER --comment 'not on main'",), without=_FOR_PROGRAMS),
)
