"""The page of an order, which is its session's at the order's turn, and the parts that keep it up to date."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from control_plane.operations.orders import reading
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.conversation.grouping import body_of
from control_plane.web.conversation.view import checks_of, view_of_order
from control_plane.web.markup.terminal import terminal_lines
from control_plane.web.pages.conversation_page import ShownSoFar, conversation_news, conversation_page, later_steps
from control_plane.web.pages.frame import frame, rights
from control_plane.web.pages.panels import panel_page

router = APIRouter(prefix="/orders", include_in_schema=False)


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
