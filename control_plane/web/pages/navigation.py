"""What belongs to every page: the sidebar, whether it is in front, the choice of the organization, the search."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from control_plane.attention.presence import page_in_front, page_left
from control_plane.contract.declarations.operation import every_operation
from control_plane.contract.declarations.session_documents import SessionSummary
from control_plane.contract.declarations.task_documents import TaskSummary
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import in_organization
from control_plane.operations import projects, providers
from control_plane.operations.agents import reading as agents
from control_plane.operations.batches import reading as batches
from control_plane.operations.drones import managing
from control_plane.operations.gateway import permit
from control_plane.operations.orders import reading as orders
from control_plane.operations.sessions import reading as sessions
from control_plane.operations.tasks import reading as tasks
from control_plane.web.access import CallerDep, CoreDep, PersonDep, is_https, organization_cookie
from control_plane.web.destinations import local_page
from control_plane.web.forms import texts
from control_plane.web.pages.frame import frame
from control_plane.web.pages.settings import tabs_for
from control_plane.web.rendering import page
from shared.errors import Forbidden

router = APIRouter(include_in_schema=False)
EACH = 5
"""Results of each kind of which there may be many."""
FEW = 3
NOT_TYPED = frozenset({"subscribe_browser", "import_organization"})
"""Operations that create something from what a program sends, not from a form."""


@router.get("/side")
def side(request: Request, caller: CallerDep, at: Annotated[str, Query(max_length=20)] = "") -> Response:
    """The sidebar with its figures."""
    return page("sidebar.html", frame(request, caller, at))


@router.post("/presence/{page_name}", status_code=204)
def presence(core: CoreDep, caller: CallerDep, page_name: str, here: Annotated[str, Form(max_length=1)] = "") -> None:
    """A page is in front of its user, or no longer. Sessions that belong to no user are told nothing anyway."""
    if caller.user_id is not None:
        note = page_in_front if here else page_left
        note(core, caller.organization_id, caller.user_id, page_name[:40])


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


@dataclass(frozen=True)
class Place:
    """Something that the palette leads to."""

    kind: str
    label: str
    href: str
    is_form: bool = False
    """It opens as a dialog."""


@router.get("/search")
def search(core: CoreDep, caller: CallerDep, text: Annotated[str, Query(max_length=200)] = "") -> list[Place]:
    """What the palette offers for a text: a few of each kind; without one, what was worked on last and fixed places."""
    words = text.strip()
    return list(_found(core, caller, words) if words else (*_recent(core, caller), *_fixed(caller)))


def _recent(core: Core, caller: Caller) -> Iterator[Place]:
    for session in sessions.list_(core, caller, limit=EACH):
        yield _session(session)
    for task in tasks.list_(core, caller, limit=FEW):
        yield _task(task)
    for batch in batches.list_(core, caller, limit=FEW):
        yield Place("Batch", batch.name, f"/batches/{batch.id}")


def _fixed(caller: Caller) -> Iterator[Place]:
    """The forms that create something, and the pages of the settings, as far as the caller may use them."""
    for operation in every_operation():
        if operation.status == HTTPStatus.CREATED and not operation.names and operation.name not in NOT_TYPED:
            with suppress(Forbidden):
                permit(operation, caller)
                page_of_its_own = "/orders/new" if operation.name == "submit" else ""
                href = page_of_its_own or f"/actions/{operation.name}"
                yield Place("Create", texts.title(operation), href, is_form=not page_of_its_own)
    for _, href, label in tabs_for(caller):
        yield Place("Settings", label, href)


def _found(core: Core, caller: Caller, words: str) -> Iterator[Place]:
    wanted = words.casefold().removeprefix("@")
    yield from (each for each in _named(core, caller) if wanted in each.label.casefold())
    yield from (_task(each) for each in tasks.list_(core, caller, text=words, limit=EACH))
    yield from (_session(each) for each in sessions.list_(core, caller, text=words, limit=EACH))
    yield from (
        Place("Order", order.title or "Empty prompt", f"/orders/{order.id}")
        for order in orders.list_orders(core, caller, EACH, text=words)
    )


def _named(core: Core, caller: Caller) -> Iterator[Place]:
    """The kinds with few things."""
    for drone in managing.list_drones(core, caller):
        yield Place("Drone", drone.name, f"/fleet/{drone.name}")
    for project in projects.list_(core, caller):
        yield Place("Project", project.slug, f"/orders?{urlencode({'project': project.slug})}")
    for agent in agents.list_(core, caller):
        yield Place("Agent", agent.name, f"/agents/{agent.name}")
    for provider in providers.list_(core, caller):
        yield Place("Model", f"{provider.name} {provider.model}", f"/models#provider-{provider.id}")
    for batch in batches.list_(core, caller):
        yield Place("Batch", batch.name, f"/batches/{batch.id}")


def _task(task: TaskSummary) -> Place:
    return Place("Task", f"{task.id} {task.title}", f"/tasks/{task.id}")


def _session(session: SessionSummary) -> Place:
    return Place("Session", session.title or session.id, f"/sessions/{session.id}")
