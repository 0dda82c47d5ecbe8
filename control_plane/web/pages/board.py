"""The board: drones, orders, and a form to submit one."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from control_plane.core import Caller, Core
from control_plane.documents.orders import SubmitRequest
from control_plane.operations import budgets, projects, providers
from control_plane.operations.drones import managing
from control_plane.operations.orders import reading
from control_plane.operations.weaknesses import weaknesses
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.pages.shell import shell
from control_plane.web.problems import problem_of
from control_plane.web.rendering import page
from shared.errors import Refused
from shared.states import OrderStatus
from shared.terminal.command_line import parse_labels
from shared.terminal.doctor import OK, Check

router = APIRouter(include_in_schema=False)

SHOWN_ORDERS = 50
MAX_PROMPT = 1_500_000


@router.get("/")
def board(core: CoreDep, caller: CallerDep, project: str = "") -> Response:
    """Everything at a glance. `project` prefills the form."""
    return _board(core, caller, {"project": project})


@router.get("/board")
def board_part(core: CoreDep, caller: CallerDep) -> Response:
    """The part of the board that changes; a visible page fetches it every 3 s."""
    return page("board_live.html", {**shell(core, caller), **_live(core, caller)})


@router.get("/orders")
def orders_page() -> Response:
    """Redirects to the board, which lists them."""
    return RedirectResponse("/", 303)


@router.post("/orders")
def submit(  # noqa: PLR0913, PLR0917 - one per field of the form
    core: CoreDep,
    caller: CallerDep,
    request: Request,
    prompt: Annotated[str, Form(max_length=MAX_PROMPT)] = "",
    project: Annotated[str, Form()] = "",
    provider: Annotated[str, Form()] = "",
    drone: Annotated[str, Form()] = "",
    labels: Annotated[str, Form()] = "",
) -> Response:
    """Submit an order and go to its page; if refused, show the board with the form as it was and the reason."""
    given = {"prompt": prompt, "project": project, "provider": provider, "drone": drone, "labels": labels}
    try:
        wanted = SubmitRequest(
            # A browser sends every line end as CR LF.
            prompt=prompt.replace("\r\n", "\n"),
            project=project,
            provider=provider or None,
            drone=drone or None,
            labels=parse_labels(labels.split()),
        )
        order = reading.submit(core, caller, wanted, None)
    except Refused as error:
        problem = problem_of(request.scope, error)
        return _board(core, caller, {**given, "problem": problem.model_dump()}, problem.status)
    return RedirectResponse(f"/orders/{order.id}", 303)


def _board(core: Core, caller: Caller, form: dict[str, Any], status: int = 200) -> Response:
    empty = {"prompt": "", "project": "", "provider": "", "drone": "", "labels": "", "problem": None}
    context = {
        **shell(core, caller),
        **_live(core, caller),
        "form": {**empty, **form},
        "projects": projects.list_(core, caller),
        "providers": providers.list_(core, caller),
    }
    return page("board.html", context, status)


def _live(core: Core, caller: Caller) -> dict[str, Any]:
    listed = reading.list_orders(core, caller, None, None, None, SHOWN_ORDERS)
    return {
        "weaknesses": _weaknesses(core, caller),
        "drones": managing.list_drones(core, caller),
        "orders": listed,
        # Including those that newer orders have pushed off the list: each is blocked until a person answers.
        "waiting": reading.list_orders(core, caller, OrderStatus.AWAITING_APPROVAL, None, None, SHOWN_ORDERS),
        "counts": Counter(each.status for each in listed),
    }


def _weaknesses(core: Core, caller: Caller) -> list[Check]:
    """What people should look at: of the installation, and the budgets of which little is left."""
    left = budgets.check(core, caller.organization_id)
    return weaknesses(core) + ([left] if left.state is not OK else [])
