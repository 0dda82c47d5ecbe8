"""The inspector of an order: calls, tools and waits over time, tokens and cost per step, attempts, what was sent."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from control_plane.operations.orders import reading
from control_plane.operations.orders.step_reading import StepRange, read_runs, read_steps
from control_plane.operations.orders.trajectories import sent_for
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.conversation.waterfall import KINDS, waterfall_of
from control_plane.web.pages.panels import panel_page

router = APIRouter(prefix="/orders", include_in_schema=False)

MOST_ROWS = 120
MOST_SENT = 400
"""Messages in one dialog."""


@router.get("/{order_id}/details")
def show_details(
    request: Request,
    core: CoreDep,
    caller: CallerDep,
    order_id: str,
    before: Annotated[int, Query(ge=1, le=2**53)] = 2**53,
) -> Response:
    """The newest steps with their times; `before` is the step that the page before this one began with."""
    order = reading.order_summary(core, caller, order_id)
    limits = reading.limits_of(core, caller, order.id)
    wanted = StepRange(before=before, kinds=KINDS, limit=MOST_ROWS, newest=True)
    steps = read_steps(core, caller, order.id, wanted)
    shown: dict[str, Any] = {
        "rows": waterfall_of(steps),
        "runs": read_runs(core, caller, order.id),
        "earlier": steps[0].seq if len(steps) == MOST_ROWS else None,
        "limits": limits,
        "is_newest": before == 2**53,
    }
    return panel_page(request, caller, order, "details", shown)


@router.get("/{order_id}/details/sent")
def show_sent(
    request: Request, core: CoreDep, caller: CallerDep, order_id: str, step: Annotated[int, Query(ge=1, le=2**53)]
) -> Response:
    """What the model was sent for the answer in a step, for a dialog."""
    order = reading.order_summary(core, caller, order_id)
    sent = sent_for(core, caller, order.id, step)
    shown: dict[str, Any] = {"step": step, "sent": sent[-MOST_SENT:], "left_out": max(0, len(sent) - MOST_SENT)}
    return panel_page(request, caller, order, "sent", shown)
