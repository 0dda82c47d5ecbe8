"""The list of orders, the page that submits one, and the page of an order, which is its session's at its turn."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from control_plane.declarations import orders as declared
from control_plane.operations.orders import reading
from control_plane.operations.orders.next_turn import request_again
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.conversation.grouping import body_of
from control_plane.web.conversation.view import checks_of, view_of_order
from control_plane.web.forms.actions import filled_form
from control_plane.web.forms.filters import Filters
from control_plane.web.markup.terminal import terminal_lines
from control_plane.web.pages.conversation_page import ShownSoFar, conversation_news, conversation_page, later_steps
from control_plane.web.pages.frame import frame, frame_for, rights
from control_plane.web.pages.panels import panel_page
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


@router.get("/{order_id}")
def show_order(request: Request, core: CoreDep, caller: CallerDep, order_id: str) -> Response:
    """The conversation up to this order, readable without scripts; with scripts, it updates automatically."""
    order = reading.order_summary(core, caller, order_id)
    around = frame(request, caller, "orders", [f"order:{order.id}", f"session:{order.session}"])
    return conversation_page(request, caller, around, view_of_order(core, caller, order.id))


@router.get("/{order_id}/news")
def order_news(core: CoreDep, caller: CallerDep, order_id: str, shown: Annotated[ShownSoFar, Query()]) -> Response:
    """What changed since step `resume`: later parts of the conversation, and everything around it."""
    view = view_of_order(core, caller, order_id, fork=shown.session)
    return conversation_news(core, caller, rights(core, caller), view, shown)


@router.get("/{order_id}/later")
def later_blocks(core: CoreDep, caller: CallerDep, order_id: str, shown: Annotated[ShownSoFar, Query()]) -> Response:
    """Later parts of the conversation alone, which is much less work than all that may have changed."""
    return later_steps(core, caller, order_id, shown)


@router.get("/{order_id}/checks")
def order_checks(request: Request, core: CoreDep, caller: CallerDep, order_id: str) -> Response:
    """The project's own commands, as they came out in their last round."""
    order = reading.order_summary(core, caller, order_id)
    checks = [body for step in checks_of(core, caller, order.id) if (body := body_of(step.model_dump()))]
    shown = [(check, terminal_lines(getattr(check, "output", ""))) for check in checks]
    return panel_page(request, caller, order, "checks", {"shown_checks": shown})
