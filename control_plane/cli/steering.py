"""`fleet say, answer, approve, deny`: user input for a running order."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from control_plane.cli.answers import for_people
from control_plane.cli.common_options import Org
from control_plane.cli.connection import client
from control_plane.cli.orders import OrderId
from shared.errors import Invalid
from shared.terminal.command_line import JsonFlag, examples, print_json
from shared.terminal.command_line import say as tell
from shared.terminal.text_file import argument_text

if TYPE_CHECKING:
    from control_plane.client.fleet import FleetClient

PANEL = "Orders"
Doc = dict[str, Any]
Call = Annotated[
    str | None, typer.Option("--call", metavar="ID", help="Id of the call (default: the one pending longest).")
]
Comment = Annotated[str, typer.Option("--comment", help="The reason; the model reads it if the call is denied.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    said = examples("fleet say ORDER 'Use pytest, not unittest'", "fleet say ORDER --after - < next.md")
    app.command("say", rich_help_panel=PANEL, epilog=said)(say)
    answered = examples("fleet answer ORDER 'Use PostgreSQL'", "fleet answer ORDER 2")
    app.command("answer", rich_help_panel=PANEL, epilog=answered)(answer)
    app.command("approve", rich_help_panel=PANEL, epilog=examples("fleet approve ORDER --always"))(approve)
    app.command("deny", rich_help_panel=PANEL, epilog=examples("fleet deny ORDER --comment 'not on main'"))(deny)


def say(
    order_id: OrderId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The message; `-` reads it from stdin.")],
    after: Annotated[bool, typer.Option("--after", help="Deliver it when the model stops.")] = False,
    interrupt: Annotated[
        bool, typer.Option("--interrupt", help="Interrupt the current step and deliver it now.")
    ] = False,
    alone: Annotated[
        bool, typer.Option("--alone", help="The model answers it before it reads the next message.")
    ] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Send a message to an order; the model reads it after the current step."""
    from control_plane.declarations.steering import SAY
    from control_plane.documents.orders import SayRequest
    from control_plane.validation.invalid_requests import checked

    words = argument_text(text)
    fields = {"text": words, "after": after, "interrupt": interrupt, **({"alone": True} if alone else {})}
    request = checked(SayRequest, fields, form="fleet say --help")
    order = client(org).call(SAY, request, order_id=order_id)
    when = "when the model stops" if after else "now" if interrupt else "after the current step"
    begun = order["status"] in {"running", "awaiting_approval"}
    _print_update(order, f"Queued; read {when if begun else 'when the run starts'}", as_json=as_json)


def answer(
    order_id: OrderId,
    text: Annotated[
        str | None,
        typer.Argument(metavar="[TEXT|CHOICE]", help="The answer, or a choice or its number; `-` reads it from stdin."),
    ] = None,
    call: Call = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Answer the question of an order's agent. Without TEXT, show the question and ask."""
    from control_plane.declarations.steering import ANSWER
    from control_plane.documents.orders import AnswerRequest
    from control_plane.validation.invalid_requests import checked

    fleet = client(org)
    words = argument_text(text) if text is not None else _typed_answer(fleet, order_id)
    request = checked(AnswerRequest, {"text": words, "call": call}, form="fleet answer --help")
    order = fleet.call(ANSWER, request, order_id=order_id)
    _print_update(order, order["reason"], as_json=as_json)


def _typed_answer(fleet: FleetClient, order_id: str) -> str:
    """Show the question on the terminal, and read the answer. Empty if the order asks none: its refusal says why."""
    from control_plane.cli.rendering import question_text
    from control_plane.declarations.orders import SHOW

    wait = for_people(fleet.call(SHOW, order_id=order_id))["waiting_for"]
    if not wait or wait["kind"] != "question":
        return ""
    if not sys.stdin.isatty():
        raise Invalid(
            "no answer was given",
            code="E-ANSWER-TEXT",
            why="stdin is not a terminal",
            next=f"fleet answer {order_id} TEXT",
        )
    for line in question_text(wait):
        tell(line)
    return str(typer.prompt("Answer", default=wait["default"], err=True))


def approve(
    order_id: OrderId,
    call: Call = None,
    always: Annotated[
        bool, typer.Option("--always", help="Also allow the same command in later orders of the session.")
    ] = False,
    raise_usd: Annotated[
        str | None,
        typer.Option(
            "--raise", metavar="USD", help="For an order at its cost limit: raise it by USD (default: the limit again)."
        ),
    ] = None,
    raise_steps: Annotated[
        str | None,
        typer.Option(
            "--raise-steps", metavar="N", help="For an order at its limit of steps: raise it (default: as many again)."
        ),
    ] = None,
    raise_seconds: Annotated[
        str | None,
        typer.Option(
            "--raise-seconds", metavar="N", help="For an order at its time limit: raise it (default: as long again)."
        ),
    ] = None,
    comment: Comment = "",
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Approve what an order waits for: a command, or more money, steps or time."""
    from control_plane.declarations.steering import APPROVE
    from control_plane.documents.orders import ApproveRequest
    from control_plane.validation.invalid_requests import checked

    fields = {"call": call, "always": always, "comment": comment}
    fields |= {"raise_usd": raise_usd, "raise_steps": raise_steps, "raise_seconds": raise_seconds}
    request = checked(ApproveRequest, fields, form="fleet approve --help")
    order = client(org).call(APPROVE, request, order_id=order_id)
    _print_update(order, order["reason"], as_json=as_json)


def deny(
    order_id: OrderId,
    call: Call = None,
    finish: Annotated[
        bool, typer.Option("--finish", help="For an order at its cost limit: one more answer, with a summary.")
    ] = False,
    comment: Comment = "",
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Deny what an order waits for. Without a command the run continues, without money it stops."""
    from control_plane.declarations.steering import DENY
    from control_plane.documents.orders import DenyRequest
    from control_plane.validation.invalid_requests import checked

    request = checked(DenyRequest, {"call": call, "finish": finish, "comment": comment}, form="fleet deny --help")
    order = client(org).call(DENY, request, order_id=order_id)
    _print_update(order, order["reason"], as_json=as_json)


def _print_update(order: Doc, text: str, *, as_json: bool) -> None:
    if as_json:
        print_json(order)
    else:
        tell(f"{order['id']} {order['status']}: {text}")
        tell(f"  next  fleet follow {order['id']}")
