"""The drones: what each does, its queue, its machine."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from control_plane.operations.access import tokens
from control_plane.operations.drones import managing
from control_plane.operations.orders import reading
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.fleet_view import drone_card, fleet_view, outlooks
from control_plane.web.pages.frame import frame_for, rights
from control_plane.web.rendering import page, wants_part
from shared.errors import NotFound

router = APIRouter(prefix="/fleet", include_in_schema=False)
RECENT = 20


@router.get("")
def fleet(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """A card for each drone, and the orders that no drone has."""
    part = wants_part(request)
    around = frame_for(request, caller, "fleet", ["fleet"])
    view = fleet_view(core, caller)
    context = {**around, "fleet": view, "outlooks": outlooks(core, caller, view.cards)}
    return page("fleet/cards.html" if part else "fleet/page.html", context)


@router.get("/joined")
def joined(core: CoreDep, caller: CallerDep, token: Annotated[str, Query(max_length=64)]) -> Response:
    """Which machines have joined with a new token, for the dialog that shows its commands."""
    found = next((each for each in tokens.list_join_tokens(core, caller) if each.id == token), None)
    if found is None:
        raise NotFound("this join token is gone", code="E-TOKEN-404", next="add the machine again")
    since = [each for each in managing.list_drones(core, caller) if each.registered_at >= found.created_at]
    return page("fleet/joined.html", {**rights(core, caller), "token": found, "joined": since[: found.used]})


@router.get("/{name}")
def drone(request: Request, core: CoreDep, caller: CallerDep, name: str) -> Response:
    """One drone in full, with its current and recent orders."""
    part = wants_part(request)
    around = frame_for(request, caller, "fleet", ["fleet"])
    card = drone_card(core, caller, name)
    recent = reading.ended_orders(core, caller, RECENT, drone=name)
    template = "fleet/drone.html" if part else "fleet/drone_page.html"
    return page(template, {**around, "card": card, "recent": recent, "outlooks": outlooks(core, caller, [card])})
