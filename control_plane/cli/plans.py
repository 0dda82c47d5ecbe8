"""`fleet plan show, edit, approve, send-back`: what an agent proposes before it changes anything."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from shutil import rmtree, which
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Annotated, Any

import typer

from control_plane.cli.common_options import Org
from control_plane.cli.connection import client
from control_plane.cli.orders import OrderId
from shared.errors import Invalid, Precondition
from shared.terminal.command_line import JsonFlag, examples, print_json
from shared.terminal.command_line import say as tell
from shared.terminal.text_file import text_of

if TYPE_CHECKING:
    from control_plane.contract.client.fleet import FleetClient

Doc = dict[str, Any]
_STATES = {
    "planning": "the agent plans, and may only read",
    "presented": "waiting for approval",
    "approved": "approved",
}


def add_others(group: typer.Typer) -> None:
    """Register the hand-written commands."""
    edited = examples("fleet plan edit ORDER", "fleet plan show ORDER --json | jq -r .text > plan.md")
    group.command("edit", epilog=edited)(edit)
    group.command("approve", epilog=examples("fleet plan approve ORDER", "fleet plan approve ORDER --points 1,3"))(
        approve
    )


def edit(
    order_id: OrderId,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]", help="The edited plan as Markdown; `-` reads it from stdin (default: opens an editor)."
        ),
    ] = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Edit the plan of an order in $EDITOR, or replace it by a file. It still has to be approved."""
    from control_plane.contract.declarations import orders

    fleet = client(org)
    # By the time the editor is closed, `@last` may stand for another order.
    order_id = fleet.call(orders.SHOW, order_id=order_id)["id"]
    plan = _in_editor(fleet, order_id) if file is None else _sent(fleet, order_id, text_of(file), {})
    if as_json:
        print_json(plan)
        return
    tell(f"{order_id} plan edited (revision {plan['revision']}), still waiting for approval")
    tell(f"  next  fleet plan approve {order_id}")


def approve(
    order_id: OrderId,
    points: Annotated[
        str | None,
        typer.Option("--points", metavar="1,3", help="Points to carry out (default: those that are ticked)."),
    ] = None,
    comment: Annotated[str, typer.Option("--comment", help="A comment for the agent.")] = "",
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Approve the plan of an order, or some of its points; the agent then carries them out."""
    from control_plane.contract.declarations.plans import APPROVE, ApprovePlanRequest
    from control_plane.contract.validation.invalid_requests import checked

    fields = {"points": None if points is None else _numbers(points), "comment": comment}
    request = checked(ApprovePlanRequest, fields, form="fleet plan approve --help")
    order = client(org).call(APPROVE, request, order_id=order_id)
    if as_json:
        print_json(order)
        return
    tell(f"{order['id']} {order['status']}: {order['reason']}")
    tell(f"  next  fleet follow {order['id']}")


def shown_text(plan: Doc) -> str:
    """The plan with its state, and the report on each point once it is approved."""
    from control_plane.cli.rendering import report_lines

    head = f"plan {plan['round']}, {_STATES[plan['state']]}" if plan["round"] else _STATES[plan["state"]]
    notes = [head, f"revision {plan['revision']}" if plan["revision"] else "", plan["user"] and f"by {plan['user']}"]
    return "\n".join((", ".join(filter(None, notes)), "", plan["text"], *report_lines(plan)))


def _numbers(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _sent(fleet: FleetClient, order_id: str, text: str, read: Doc) -> Doc:
    from control_plane.contract.declarations.plans import EDIT, EditPlanRequest
    from control_plane.contract.validation.invalid_requests import checked

    request = checked(EditPlanRequest, {"text": text, **read}, form="fleet plan edit --help")
    return dict(fleet.call(EDIT, request, order_id=order_id))


def _in_editor(fleet: FleetClient, order_id: str) -> Doc:
    """Let the user edit the plan in an editor, and send it. A plan that was not sent stays in its file.

    Raises Invalid without a terminal or without a change, and Precondition if the editor fails.
    """
    from control_plane.contract.declarations.plans import SHOW

    plan = fleet.call(SHOW, order_id=order_id)
    if plan["state"] != "presented":
        # Nothing waits: the refusal says why.
        return _sent(fleet, order_id, plan["text"] or "-", {})
    if not sys.stdin.isatty():
        raise Invalid(
            "no edited plan was given",
            code="E-PLAN-EDITOR",
            why="stdin is not a terminal, so no editor can be opened",
            next=f"fleet plan edit {order_id} FILE",
        )
    file = Path(mkdtemp(prefix="fleet-plan-")) / f"plan-{order_id}.md"
    file.write_text(plan["text"], encoding="utf-8")
    try:
        _open_editor(file, order_id)
        text = text_of(str(file))
        if text.strip() == plan["text"].strip():
            raise Invalid("the plan was not changed", code="E-PLAN-EDITOR", next=f"fleet plan approve {order_id}")
        edited = _sent(fleet, order_id, text, {"revision": plan["revision"], "round": plan["round"]})
    except BaseException:
        tell(f"your edited plan is kept in {file}")
        raise
    rmtree(file.parent)
    return edited


def _open_editor(file: Path, order_id: str) -> None:
    """Wait until the editor ends; Ctrl-C is for it alone. Raises Precondition without an editor, or if it fails."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or which("nano") or which("vi")
    next_step = f"set EDITOR to the command of an editor, or: fleet plan edit {order_id} FILE"
    if not command:
        raise Precondition("no editor found", code="E-PLAN-EDITOR", next=next_step)
    # A terminal's Ctrl-C also signals this process. An editor inherits no handler, but it would inherit SIG_IGN.
    before = {each: signal.signal(each, lambda *_: None) for each in (signal.SIGINT, signal.SIGQUIT)}
    try:
        status = subprocess.run([*shlex.split(command), str(file)], check=False).returncode
    except (OSError, ValueError) as error:
        raise Precondition(
            f"the editor {command} cannot be started: {error}", code="E-PLAN-EDITOR", next=next_step
        ) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if status:
        raise Precondition(f"the editor {command} failed with exit code {status}", code="E-PLAN-EDITOR", next=next_step)
