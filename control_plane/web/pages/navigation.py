"""What belongs to every page: the sidebar as a part, the choice of the organization, the search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from control_plane.core import Caller, Core
from control_plane.lookups.organizations import in_organization
from control_plane.operations import projects
from control_plane.operations.agents import reading as agents
from control_plane.operations.drones import managing
from control_plane.operations.orders import reading as orders
from control_plane.operations.sessions import reading as sessions
from control_plane.operations.tasks import reading as tasks
from control_plane.web.access import CallerDep, CoreDep, PersonDep, is_https, organization_cookie
from control_plane.web.local_page import local_page
from control_plane.web.pages.frame import frame
from control_plane.web.presentation import title
from control_plane.web.rendering import page

router = APIRouter(include_in_schema=False)
EACH = 5
"""Results of each kind of which there may be many."""


@router.get("/side")
def side(request: Request, caller: CallerDep, at: Annotated[str, Query(max_length=20)] = "") -> Response:
    """The sidebar with its figures."""
    return page("sidebar.html", frame(request, caller, at))


@router.post("/organization")
def choose_organization(
    request: Request,
    core: CoreDep,
    person: PersonDep,
    organization: Annotated[str, Form(max_length=64)],
    next: Annotated[str, Form(max_length=1000)] = "/",
) -> Response:
    """Show this organization on all pages of this browser. Raises NotFound."""
    in_organization(core, person, organization)
    response = RedirectResponse(local_page(next), 303)
    name, secure = organization_cookie(core, request.scope), is_https(core, request.scope)
    response.set_cookie(name, organization, max_age=10**7, httponly=True, samesite="lax", secure=secure)
    return response


@router.get("/search")
def search(core: CoreDep, caller: CallerDep, text: Annotated[str, Query(max_length=200)] = "") -> list[dict[str, str]]:
    """What the palette offers for a text: a few of each kind, each with its address."""
    words = text.strip()
    return (
        [{"label": f"{kind}: {name}", "href": href} for kind, name, href in _found(core, caller, words)]
        if words
        else []
    )


def _found(core: Core, caller: Caller, words: str) -> Iterator[tuple[str, str, str]]:
    """Kind, name and address."""
    yield from _named(core, caller, words.casefold().removeprefix("@"))
    for task in tasks.list_(core, caller, text=words, limit=EACH):
        yield "Task", f"{task.id} {task.title}", f"/tasks/{task.id}"
    for session in sessions.list_(core, caller, text=words, limit=EACH):
        yield "Session", session.title or session.id, f"/sessions/{session.id}"
    for order in orders.list_orders(core, caller, EACH, text=words):
        yield "Order", title(order), f"/orders/{order.id}"


def _named(core: Core, caller: Caller, wanted: str) -> Iterator[tuple[str, str, str]]:
    """The kinds with few things."""
    few = [
        *(("Drone", each.name, f"/fleet/{each.name}") for each in managing.list_drones(core, caller)),
        *(
            ("Project", each.slug, f"/orders?{urlencode({'project': each.slug})}")
            for each in projects.list_(core, caller)
        ),
        *(("Agent", each.name, f"/agents/{each.name}") for each in agents.list_(core, caller)),
    ]
    return ((kind, name, href) for kind, name, href in few if wanted in name.casefold())
