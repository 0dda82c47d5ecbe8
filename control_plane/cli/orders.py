"""`fleet orders, show, follow, patch, cancel`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from control_plane.cli.answers import exit_code, for_people, outcome_word
from control_plane.cli.common_options import Org
from control_plane.cli.completion import choices, listed
from control_plane.cli.connection import client
from shared.errors import Invalid
from shared.states import OrderStatus
from shared.terminal.command_line import JsonFlag, examples, page, print_json, print_table, say
from shared.terminal.output import content_writer
from shared.terminal.watch import WatchFlag, watched
from shared.titles import title

PANEL = "Orders"
Doc = dict[str, Any]
OrderId = Annotated[
    str,
    typer.Argument(
        metavar="ORDER",
        help="The order's id, a unique prefix of it, or @last.",
        autocompletion=listed("orders:id", "@last"),
    ),
]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("orders", rich_help_panel=PANEL, epilog=examples("fleet orders --status running"))(orders)
    app.command("show", rich_help_panel=PANEL, epilog=examples("fleet show ORDER", "fleet show ORDER --log 7"))(show)
    app.command("follow", rich_help_panel=PANEL, epilog=examples("fleet follow ORDER"))(follow)
    app.command("patch", rich_help_panel=PANEL, epilog=examples("fleet patch ORDER | git apply"))(patch)
    app.command("cancel", rich_help_panel=PANEL, epilog=examples("fleet cancel ORDER --wait"))(cancel)


Outcome = Annotated[
    str | None,
    typer.Option(
        "--outcome",
        help="Only ended orders that lists show as this; checks_failed: its checks failed.",
        autocompletion=choices("control_plane.declarations.orders:OutcomeFilter"),
    ),
]
Text = Annotated[str | None, typer.Option("--text", help="Only orders whose prompt contains all of these words.")]
Day = Annotated[str | None, typer.Option(metavar="DATE", help="Only orders of this day (UTC) and later.")]
LastDay = Annotated[str | None, typer.Option(metavar="DATE", help="Only orders of this day (UTC) and earlier.")]


def orders(
    status: Annotated[
        str | None,
        typer.Option("--status", help="Only orders with this status.", autocompletion=choices(tuple(OrderStatus))),
    ] = None,
    outcome: Outcome = None,
    project: Annotated[
        str | None,
        typer.Option("--project", help="Only orders of this project.", autocompletion=listed("projects:slug")),
    ] = None,
    drone: Annotated[
        str | None, typer.Option("--drone", help="Only orders on this drone.", autocompletion=listed("drones:name"))
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="Only orders with this model.")] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", help="Only turns of this agent.", autocompletion=listed("agents:name"))
    ] = None,
    user: Annotated[str | None, typer.Option("--user", help="Only orders that this user submitted.")] = None,
    text: Text = None,
    since: Day = None,
    until: LastDay = None,
    before: Annotated[
        str | None, typer.Option("--before", metavar="ORDER", help="Only orders submitted before this order.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=1000, help="Maximum number of results, newest first.")
    ] = 50,
    every: Annotated[bool, typer.Option("--all", help="Include service orders of the control plane.")] = False,
    mine: Annotated[bool, typer.Option("--mine", help="Only orders that you submitted.")] = False,
    watch: WatchFlag = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """List orders, newest first."""
    if status is not None and status not in set(OrderStatus):
        raise Invalid(
            f"unknown order status {status[:40]!r}",
            code="E-ORDER-STATUS",
            why=f"expected one of {', '.join(OrderStatus)}",
            next="fleet orders --status running",
        )
    from control_plane.declarations.orders import LIST, OrderFilter
    from control_plane.validation.invalid_requests import checked

    terms = {"status": status, "project": project, "drone": drone, "model": model, "agent": agent, "user": user}
    span = {"outcome": outcome, "text": text, "since": since, "until": until, "before": before}
    fields = {**terms, **span, "limit": limit, "all": every, "mine": mine}
    wanted, fleet = checked(OrderFilter, fields, form="fleet orders --help"), client(org)
    show = print_json if as_json else _print_orders
    watched(lambda: show(fleet.call(LIST, wanted)), watch=watch, as_json=as_json)


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
    from control_plane.declarations.orders import SHOW

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
    order_id: OrderId,
    reason: Annotated[str, typer.Option("--reason", help="The reason, shown on the order.")] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the order has ended.")] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Cancel an order; its changes so far are kept."""
    from control_plane.declarations.orders import CANCEL, CancelRequest
    from control_plane.validation.invalid_requests import checked

    fleet = client(org)
    request = checked(CancelRequest, {"reason": reason}, form="fleet cancel --help")
    order = fleet.call(CANCEL, request, order_id=order_id)
    if wait:
        order = _ended(fleet, order_id)
    if as_json:
        print_json(order)
    else:
        say(f"{order['id']} {order['status']}: {order['reason']}")


def _ended(fleet: Any, order_id: str) -> Doc:
    for event, data in fleet.follow(order_id):
        if event == "end":
            return dict(data)
    from control_plane.declarations.orders import SHOW

    return dict(fleet.call(SHOW, order_id=order_id))


def follow_to_the_end(fleet: Any, order_id: str, *, as_json: bool, outputs: bool = False) -> int:
    """Show an order in the terminal until it has ended; returns the exit code for its outcome."""
    from control_plane.cli.order_follow import follow_as_json, follow_as_text

    order = follow_as_json(fleet, order_id) if as_json else follow_as_text(fleet, order_id, outputs=outputs)
    return exit_code(order)


def cost(usd: float | None) -> str:
    """Money for people; an unknown price is never shown as zero."""
    return "price unknown" if usd is None else f"${usd:.4f}"
