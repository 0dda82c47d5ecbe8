"""`fleet retry` and `fleet resume`: run a failed or canceled order again."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from control_plane.cli.common_options import Org
from control_plane.cli.connection import client
from control_plane.cli.orders import PANEL, OrderId, follow_to_the_end
from shared.terminal.command_line import JsonFlag, examples, parse_params, print_json, say

Doc = dict[str, Any]
FollowFlag = Annotated[bool, typer.Option("--follow", help="Follow the order until it ends; exit with its outcome.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("retry", rich_help_panel=PANEL, epilog=examples("fleet retry ORDER --follow"))(retry)
    shown = examples("fleet resume ORDER --follow", "fleet resume ORDER --max-iterations 100 --say 'Mind the tests'")
    app.command("resume", rich_help_panel=PANEL, epilog=shown)(resume)


def retry(order_id: OrderId, follow: FollowFlag = False, as_json: JsonFlag = False, org: Org = None) -> int:
    """Retry a failed or canceled order from the beginning, in a new workspace."""
    from control_plane.declarations.orders import RETRY

    fleet = client(org)
    return _print_or_follow(fleet, fleet.call(RETRY, order_id=order_id), follow=follow, as_json=as_json)


def resume(
    order_id: OrderId,
    max_iterations: Annotated[
        int | None, typer.Option("--max-iterations", help="Maximum steps from now on (0 = unlimited).")
    ] = None,
    cost_limit: Annotated[
        float | None, typer.Option("--cost-limit", help="Maximum cost in USD from now on (0 = unlimited).")
    ] = None,
    max_run_seconds: Annotated[
        float | None, typer.Option("--max-run-seconds", help="Time limit in seconds from now on (0 = unlimited).")
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option("--limit", metavar="NAME=VALUE", help="Any limit from now on; repeats."),
    ] = None,
    text: Annotated[
        str | None, typer.Option("--say", metavar="TEXT", help="A message that the model reads first.")
    ] = None,
    follow: FollowFlag = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> int:
    """Resume a failed or canceled order from its last complete step. Its limits start over."""
    from control_plane.declarations.orders import RESUME
    from control_plane.documents.orders import ResumeRequest
    from control_plane.validation.invalid_requests import checked

    fleet = client(org)
    limits = {"max_iterations": max_iterations, "cost_limit": cost_limit, "max_run_seconds": max_run_seconds}
    named = {"limits": parse_params(limit)} if limit else {}
    request = checked(ResumeRequest, {**limits, **named, "say": text}, form="fleet resume --help")
    order = fleet.call(RESUME, request, order_id=order_id)
    return _print_or_follow(fleet, order, follow=follow, as_json=as_json)


def _print_or_follow(fleet: Any, order: Doc, *, follow: bool, as_json: bool) -> int:
    if follow:
        return follow_to_the_end(fleet, order["id"], as_json=as_json)
    if as_json:
        print_json(order)
        return 0
    say(f"{order['id']} {order['status']}: {order['reason']}")
    say(f"  next  fleet follow {order['id']}")
    return 0
