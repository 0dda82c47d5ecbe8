"""`fleet orders, show, follow, patch, cancel, move, prioritize, retry, resume`: orders that were submitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from control_plane.cli.answers import cost, exit_code, for_people, outcome_word
from control_plane.cli.common_options import Org
from control_plane.cli.completion import listed
from control_plane.cli.connection import client
from control_plane.cli.derived_commands import ByHandCommand, TypedCommand
from shared.errors import Invalid
from shared.states import OrderStatus
from shared.terminal.command_line import JsonFlag, examples, page, print_json, print_table, say
from shared.terminal.output import content_writer
from shared.terminal.watch import WatchFlag, watched
from shared.titles import title

if TYPE_CHECKING:
    from collections.abc import Mapping

    from control_plane.contract.declarations.operation import Operation

PANEL = "Orders"
Doc = dict[str, Any]
OrderId = Annotated[
    str,
    typer.Argument(
        metavar="ORDER",
        help="The order's id, a unique prefix of it, or @last.",
        autocompletion=listed("orders:id|@last"),
    ),
]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    ORDERS.add_to(app)
    app.command("show", rich_help_panel=PANEL, epilog=examples("fleet show ORDER", "fleet show ORDER --log 7"))(show)
    app.command("follow", rich_help_panel=PANEL, epilog=examples("fleet follow ORDER"))(follow)
    app.command("patch", rich_help_panel=PANEL, epilog=examples("fleet patch ORDER | git apply"))(patch)
    for command in CHANGING:
        command.add_to(app)


def orders(call: TypedCommand, *, watch: WatchFlag = False, as_json: JsonFlag = False) -> int:
    """List orders, newest first."""
    status = call.fields.get("status")
    if status is not None and status not in set(OrderStatus):
        raise Invalid(
            f"unknown order status {status[:40]!r}",
            code="E-ORDER-STATUS",
            why=f"expected one of {', '.join(OrderStatus)}",
            next="fleet orders --status running",
        )
    show = print_json if as_json else _print_orders
    watched(lambda: show(call.perform()), watch=watch, as_json=as_json)
    return 0


def _print_orders(found: list[Doc]) -> None:
    columns = ("ORDER", "STATUS", "TITLE", "TIME", "DRONE", "COST", "PROJECT", "REASON")
    rows = [
        (
            order["id"],
            outcome_word(order),
            title(order["prompt"]),
            order["stats"]["duration_label"] if order["attempt"] else None,
            order["drone"],
            cost(order["stats"]["cost_usd"]),
            order["project"],
            order.get("doing") or order["reason"],
        )
        for order in found
    ]
    print_table(columns, rows, empty="no orders yet; create one: fleet submit 'PROMPT'")


Outputs = Annotated[
    bool, typer.Option("--outputs", help="Show the last lines that every call printed, not only of failed calls.")
]


def show(
    order_id: OrderId,
    log: Annotated[int | None, typer.Option("--log", metavar="SEQ", help="The full output of step SEQ.")] = None,
    raw: Annotated[
        int | None, typer.Option("--raw", metavar="SEQ", help="The provider's raw answer at step SEQ, if it is kept.")
    ] = None,
    outputs: Outputs = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Show an order: status and reason, runs, steps and cost."""
    fleet = client(org)
    if log is not None:
        content_writer()(fleet.log(order_id, log))
        return
    if raw is not None:
        content_writer()(fleet.raw(order_id, raw))
        return
    from control_plane.contract.declarations.orders import SHOW

    order = fleet.call(SHOW, order_id=order_id)
    if as_json:
        print_json(order)
        return
    from control_plane.cli.rendering import order_text

    page(order_text(for_people(order), outputs=outputs))


def follow(order_id: OrderId, outputs: Outputs = False, as_json: JsonFlag = False, org: Org = None) -> int:
    """Follow an order until it ends. Exits with 0 if it is done or nothing had to change, else with 1."""
    return follow_to_the_end(client(org), order_id, as_json=as_json, outputs=outputs)


def patch(order_id: OrderId, org: Org = None) -> None:
    """Print an order's patch against its base commit."""
    content_writer()(client(org).patch(order_id))


def cancel(
    call: TypedCommand,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the order has ended.")] = False,
    as_json: JsonFlag = False,
) -> int:
    """Cancel an order; its changes so far are kept."""
    order = call.perform()
    if wait:
        order = _ended(call.fleet, order["id"])
    if as_json:
        print_json(order)
    else:
        say(f"{order['id']} {order['status']}: {order['reason']}")
    return 0


def _ended(fleet: Any, order_id: str) -> Doc:
    from control_plane.cli.order_follow import without_connection

    for event, data in without_connection(fleet.follow(order_id)):
        if event == "end":
            return dict(data)
    from control_plane.contract.declarations.orders import SHOW

    return dict(fleet.call(SHOW, order_id=order_id))


def move(call: TypedCommand, *, as_json: JsonFlag = False) -> int:
    """Move an order that has not started to another drone."""
    return _print_placed(call, as_json=as_json)


def prioritize(call: TypedCommand, *, as_json: JsonFlag = False) -> int:
    """Change the priority of an order, and with it the order in which waiting orders start."""
    return _print_placed(call, as_json=as_json)


def _print_placed(call: TypedCommand, *, as_json: bool) -> int:
    order = call.perform()
    if as_json:
        print_json(order)
    else:
        say(f"{order['id']} {order['status']}, priority {order['priority']}: {order['reason']}")
    return 0


FollowFlag = Annotated[bool, typer.Option("--follow", help="Follow the order until it ends; exit with its outcome.")]


def retry(call: TypedCommand, *, follow: FollowFlag = False, as_json: JsonFlag = False) -> int:
    """Retry a failed or canceled order from the beginning, in a new workspace."""
    return _print_or_follow(call, follow=follow, as_json=as_json)


def resume(call: TypedCommand, *, follow: FollowFlag = False, as_json: JsonFlag = False) -> int:
    """Resume a failed or canceled order from its last complete step. Its limits start over."""
    return _print_or_follow(call, follow=follow, as_json=as_json)


def _print_or_follow(call: TypedCommand, *, follow: bool, as_json: bool) -> int:
    order = call.perform()
    if follow:
        return follow_to_the_end(call.fleet, order["id"], as_json=as_json)
    if as_json:
        print_json(order)
        return 0
    say(f"{order['id']} {order['status']}: {order['reason']}")
    say(f"  next  fleet follow {order['id']}")
    return 0


def follow_to_the_end(fleet: Any, order_id: str, *, as_json: bool, outputs: bool = False) -> int:
    """Show an order in the terminal until it has ended; returns the exit code for its outcome."""
    from control_plane.cli.order_follow import follow_as_json, follow_as_text

    order = follow_as_json(fleet, order_id) if as_json else follow_as_text(fleet, order_id, outputs=outputs)
    return exit_code(order)


def _declared() -> Mapping[str, Operation]:
    from control_plane.contract.declarations import orders as declared

    return {
        "orders": declared.LIST,
        "cancel": declared.CANCEL,
        "move": declared.MOVE,
        "prioritize": declared.SET_PRIORITY,
        "retry": declared.RETRY,
        "resume": declared.RESUME,
    }


ORDERS = ByHandCommand("orders", _declared, orders, PANEL, ("fleet orders --status running",), defaults={"limit": 50})
CHANGING = (
    ByHandCommand("cancel", _declared, cancel, PANEL, ("fleet cancel ORDER --wait",)),
    ByHandCommand("move", _declared, move, PANEL, ("fleet move ORDER --drone mila",)),
    ByHandCommand("prioritize", _declared, prioritize, PANEL, ("fleet prioritize ORDER --priority 10",)),
    ByHandCommand("retry", _declared, retry, PANEL, ("fleet retry ORDER --follow",)),
    ByHandCommand(
        "resume",
        _declared,
        resume,
        PANEL,
        ("fleet resume ORDER --follow", "fleet resume ORDER --max-iterations 100 --say 'Mind the tests'"),
    ),
)
