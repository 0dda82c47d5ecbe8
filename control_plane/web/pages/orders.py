"""The list of orders, and the page that submits one."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from control_plane.declarations import orders as declared
from control_plane.operations.orders import reading
from control_plane.operations.orders.next_turn import request_again
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.forms.actions import filled_form
from control_plane.web.forms.filters import Filters
from control_plane.web.pages.frame import frame_for
from control_plane.web.rendering import page, wants_part

router = APIRouter(prefix="/orders", include_in_schema=False)
LISTED = "/orders"


@router.get("")
def list_orders(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """The list, narrowed by what the address says."""
    filters = Filters.of(LISTED, declared.LIST, request.query_params)
    part = wants_part(request)
    around = frame_for(request, caller, "orders", [filters.topic])
    context = {
        **around,
        **filters.listed(request, "orders", partial(reading.list_orders, core, caller)),
        "filters": filters,
    }
    if part:
        return page("orders/list.html", context)
    return page("orders/page.html", {**context, "offers": filters.offers(core, caller)})


@router.get("/new")
def new_order(
    request: Request, core: CoreDep, caller: CallerDep, source: Annotated[str, Query(alias="from")] = ""
) -> Response:
    """The form of a new order, filled with what the order `from` was submitted with, and with values in the address."""
    given = request_again(core, caller, source) if source else None
    return filled_form(request, core, caller, declared.SUBMIT, given)
