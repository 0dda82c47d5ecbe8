"""`fleet submit`: a prompt becomes a work order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from control_plane.cli.completion import choices
from control_plane.cli.derived_commands import ByHandCommand, TypedCommand
from control_plane.cli.orders import PANEL, follow_to_the_end
from control_plane.cli.races import submit_race
from shared.errors import Invalid, Precondition
from shared.terminal.command_line import JsonFlag, print_json, put, say
from shared.terminal.output import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from control_plane.contract.client.fleet import FleetClient
    from control_plane.contract.declarations.operation import Operation

Doc = dict[str, Any]


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    SUBMIT.add_to(app)


def submit(
    call: TypedCommand,
    *,
    race: Annotated[
        int | None,
        typer.Option("--race", min=2, metavar="N", help="Submit it N times, and take the best result."),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option("--models", metavar="A,B", help="Submit it once for each of these providers or models."),
    ] = None,
    pick: Annotated[
        str | None,
        typer.Option(
            "--pick",
            help="Who decides a race: first (verified work, default), person or judge.",
            autocompletion=choices("shared.races:Pick"),
        ),
    ] = None,
    rubric: Annotated[str | None, typer.Option("--rubric", help="What counts, for --pick judge.")] = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option("--idempotency-key", help="A repeated request with the same key returns the same order."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Follow the order until it ends; exit with its outcome.")
    ] = False,
    as_json: JsonFlag = False,
) -> int:
    """Submit a prompt as a work order."""
    request, fleet = call.fields, call.fleet
    if request.get("drone") and request.get("labels"):
        raise Invalid("--drone and --label cannot be used together", code="E-USAGE", next="leave one of them out")
    terms = _race({"count": race, "models": models, "pick": pick, "rubric": rubric})
    request["project"] = request.get("project") or _project(fleet, request.get("session"))
    if terms:
        return submit_race(fleet, {**request, **terms}, key=idempotency_key, follow=follow, as_json=as_json)
    order = call.perform(idempotency_key=idempotency_key)
    if follow:
        return follow_to_the_end(fleet, order["id"], as_json=as_json)
    _print_order(order, as_json=as_json)
    return 0


def _project(fleet: FleetClient, session: str | None) -> str:
    """The session's project, else the only one. Raises Precondition without a project, Invalid with several."""
    from control_plane.contract.declarations import projects, sessions

    if session is not None:
        return str(fleet.call(sessions.SHOW, session_id=session)["project"])
    slugs = [str(each["slug"]) for each in fleet.call(projects.LIST)]
    if not slugs:
        raise Precondition(
            "there is no project yet", code="E-PROJECT-NONE", next="fleet project add SLUG --git-url URL"
        )
    if len(slugs) > 1:
        raise Invalid(
            "--project is required",
            code="E-USAGE",
            why=f"there are several projects: {', '.join(slugs)}",
            next=f"fleet submit … --project {slugs[0]}",
        )
    return slugs[0]


def _race(given: Doc) -> Doc:
    """The terms of a race, if the options describe one. Raises Invalid for options that only a race has."""
    if given["count"] is None and given["models"] is None:
        if given["pick"] or given["rubric"]:
            raise Invalid("--pick and --rubric are for races", code="E-USAGE", next="add --race N, or --models A,B")
        return {}
    models = [each.strip() for each in (given["models"] or "").split(",") if each.strip()]
    return {name: value for name, value in {**given, "models": models}.items() if value is not None}


def _print_order(order: Doc, *, as_json: bool) -> None:
    if as_json:
        print_json(order)
        return
    put(f"{printable(order['id'])}\n")
    say(f"{order['status']}: {order['reason']}")
    say(f"  next  fleet follow {order['id']}")


def _declared() -> Mapping[str, Operation]:
    from control_plane.contract.declarations import orders

    return {"submit": orders.SUBMIT}


SUBMIT = ByHandCommand(
    "submit",
    _declared,
    submit,
    PANEL,
    (
        "fleet submit 'Fix the failing test' --follow",
        "fleet submit - --project demo --label gpu=yes < prompt.md",
        "fleet submit 'Make it faster' --project demo --race 3",
        "fleet submit 'Document it' --after @last --follow",
        "fleet submit 'Release it' --project demo --approve risky --allow 'git push origin *'",
    ),
    arguments=("prompt",),
    found={"project": "the session's, else the only one"},
)
