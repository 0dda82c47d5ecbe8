"""`fleet race …` and `fleet compare`: orders for one prompt, side by side."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from control_plane.cli.answers import cost, exit_code, for_people, outcome_word, print_answer
from control_plane.cli.common_options import Org
from control_plane.cli.completion import listed
from control_plane.cli.connection import client
from control_plane.cli.group_follow import follow_group
from control_plane.cli.orders import PANEL
from shared.errors import Invalid, NotFound
from shared.terminal.command_line import JsonFlag, examples, print_json, print_json_line, print_table, put, say

Doc = dict[str, Any]
_GOING_ON = {"running", "judging"}
_COLUMNS = ("", "ORDER", "MODEL", "DRONE", "STATUS", "CHECKS", "FILES", "LINES", "STEPS", "COST", "TIME", "BRANCH")


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("compare", rich_help_panel=PANEL, epilog=examples("fleet compare ORDER ORDER", "fleet compare RACE"))(
        compare
    )


def compare(
    ids: Annotated[
        list[str],
        typer.Argument(metavar="ORDER|RACE", help="Orders, or one race.", autocompletion=listed("orders:id|@last")),
    ],
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Show orders side by side: model, checks, changes, cost and time."""
    fleet = client(org)
    found, winner = _compared(fleet, ids)
    if as_json:
        print_json(found)
    else:
        _print(for_people(found), winner)


def _compared(fleet: Any, ids: list[str]) -> tuple[list[Doc], str | None]:
    """The orders; a single id may be that of a race, which may have a winner."""
    from control_plane.contract.declarations.races import SHOW

    if len(ids) == 1:
        try:
            document = fleet.call(SHOW, race_id=ids[0])
            return list(document["orders"]), document["race"]["winner"]
        except NotFound:
            pass  # Then it must be an order, or there is neither.
        except Invalid as several_races:
            try:
                return _orders(fleet, ids), None
            except NotFound:
                raise several_races from None
    return _orders(fleet, ids), None


def _orders(fleet: Any, ids: list[str]) -> list[Doc]:
    from control_plane.contract.declarations.orders import SHOW

    found = [dict(fleet.call(SHOW, order_id=each)) for each in ids]
    return [{name: value for name, value in order.items() if name != "steps"} for order in found]


def race_text(document: Doc) -> str:
    """A race's state, and its orders side by side."""
    race = document["race"]
    put(
        f"race     {race['id']}  {_state(race)}\n"
        f"reason   {race['reason']}\n"
        f"prompt   {race['title']}\n"
        f"project  {race['project']}   decided by {race['pick']}   {cost(race['cost_usd'])}\n\n"
    )
    _print(document["orders"], winner=race["winner"])
    return ""


def _state(race: Doc) -> str:
    """Its status, and what came of the order that won, unless the status tells."""
    outcome = race.get("outcome")
    return f"{race['status']}, {outcome}" if race["status"] == "won" and outcome else str(race["status"])


def submit_race(fleet: Any, request: Doc, *, key: str | None, follow: bool, as_json: bool) -> int:
    """Submit a race; with `follow`, until it is decided. Returns the exit code."""
    from control_plane.contract.declarations.races import SUBMIT, RaceRequest
    from control_plane.contract.validation.invalid_requests import checked

    wanted = checked(RaceRequest, request, form="fleet submit --help")
    document = fleet.call(SUBMIT, wanted, idempotency_key=key)
    if follow:
        return _followed(fleet, document, as_json=as_json)
    print_answer(document, race_text, as_json=as_json)
    if not as_json:
        say(f"  next  fleet race show {document['race']['id']}")
    return 0


def _followed(fleet: Any, document: Doc, *, as_json: bool) -> int:
    from control_plane.contract.declarations.races import SHOW

    again = partial(fleet.call, SHOW, race_id=document["race"]["id"])
    document = follow_group(document, again, _is_over, _change, as_json=as_json)
    if as_json:
        print_json_line(document)
    else:
        put("\n")
        race_text(for_people(document))
    return exit_code(document["race"])


def _is_over(document: Doc) -> bool:
    ended = all(order["ended_at"] is not None for order in document["orders"])
    return ended and document["race"]["status"] not in _GOING_ON


def _change(order: Doc) -> str:
    return f"{order['key']}  {outcome_word(order)}: {order['reason']}"


def _print(orders: list[Doc], winner: str | None = None) -> None:
    rows = [
        (
            f"{'✓' if order['id'] == winner else ' '} {order['key'] or ''}".rstrip(),
            order["id"],
            order["model"],
            order["drone"],
            outcome_word(order),
            order["verification"],
            order["files_changed"],
            _lines(order),
            order["stats"]["tool_calls"],
            cost(order["stats"]["cost_usd"]),
            order["stats"]["duration_label"],
            order["branch"] if order["pushed"] else None,
        )
        for order in orders
    ]
    print_table(_COLUMNS, rows, empty="no orders")


def _lines(order: Doc) -> str | None:
    if order["lines_added"] is None:
        return None
    return f"+{order['lines_added']} -{order['lines_removed']}"
