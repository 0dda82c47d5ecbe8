"""The page of one order: its description, its progress, its outcome."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Query
from starlette.responses import RedirectResponse, Response

from control_plane.declarations.orders import CancelRequest
from control_plane.documents.orders import (
    ApproveRequest,
    DenyRequest,
    OrderDocument,
    OrderSummary,
    ResumeRequest,
    SayRequest,
)
from control_plane.operations.orders import reading, retrying, steering
from control_plane.operations.orders.canceling import cancel
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.pages.shell import shell
from control_plane.web.pages.transcript import shown_steps
from control_plane.web.rendering import page
from shared.states import ENDED, OrderStatus

router = APIRouter(prefix="/orders", include_in_schema=False)

SHOWN_STEPS = 400
"""The page of a longer transcript begins with the last steps; the rest is a click away."""
PART_STEPS = 200
MAX_SAID = 200_000
"""Maximum characters of a form's text that are read; the limit of a message is lower."""
CallField = Annotated[str | None, Form(max_length=1000, description="Id of the pending call.")]


@router.get("/{order_id}")
def show_order(core: CoreDep, caller: CallerDep, order_id: str, all: bool = False) -> Response:
    """The whole page, readable without scripts; with scripts, it updates automatically."""
    order = reading.show_order(core, caller, order_id)
    hidden = 0 if all else max(0, len(order.steps) - SHOWN_STEPS)
    context = {
        **shell(core, caller),
        **_head(order),
        "steps": shown_steps(order.steps[hidden:]),
        "hidden": hidden,
        "last_seq": order.steps[-1].seq if order.steps else 0,
        "full": order,
        "todo": order.todo,
        "unheard": order.unheard,
    }
    return page("order.html", context)


@router.get("/{order_id}/parts")
def order_parts(
    core: CoreDep, caller: CallerDep, order_id: str, after: Annotated[int, Query(ge=0, le=2**53)] = 0
) -> Response:
    """The changes since step `after`: the head, the later steps, and, once there is one, the result."""
    # The order first, then its steps: an order that is shown as ended then has all its steps.
    summary = reading.order_summary(core, caller, order_id)
    steps = reading.steps_after(core, caller, order_id, after, PART_STEPS)
    full: OrderDocument | None = None
    if OrderStatus(summary.status) in ENDED:
        full = reading.show_order(core, caller, order_id)
    todo, unheard = reading.beside_summary(core, caller, order_id)
    context = {
        **shell(core, caller),
        **_head(summary),
        "steps": shown_steps(steps),
        "full": full,
        "todo": todo,
        "unheard": unheard,
    }
    return page("order_parts.html", context)


@router.post("/{order_id}/cancel")
def cancel_order(
    core: CoreDep, caller: CallerDep, order_id: str, reason: Annotated[str, Form(max_length=1000)] = ""
) -> Response:
    cancel(core, caller, order_id, CancelRequest(reason=reason))
    return RedirectResponse(f"/orders/{order_id}", 303)


@router.post("/{order_id}/retry")
def retry(core: CoreDep, caller: CallerDep, order_id: str) -> Response:
    retrying.retry(core, caller, order_id)
    return RedirectResponse(f"/orders/{order_id}", 303)


@router.post("/{order_id}/resume")
def resume(
    core: CoreDep, caller: CallerDep, order_id: str, text: Annotated[str, Form(max_length=MAX_SAID)] = ""
) -> Response:
    # A browser sends every line end as CR LF.
    words = text.replace("\r\n", "\n").strip()
    retrying.resume(core, caller, order_id, ResumeRequest(say=words or None))
    return RedirectResponse(f"/orders/{order_id}", 303)


@router.post("/{order_id}/say")
def say(
    core: CoreDep,
    caller: CallerDep,
    order_id: str,
    text: Annotated[str, Form(max_length=MAX_SAID)] = "",
    when: Annotated[Literal["steer", "after", "interrupt"], Form()] = "steer",
) -> Response:
    # A browser sends every line end as CR LF.
    words = text.replace("\r\n", "\n")
    said = SayRequest(text=words, after=when == "after", interrupt=when == "interrupt")
    steering.say(core, caller, order_id, said)
    return RedirectResponse(f"/orders/{order_id}", 303)


@router.post("/{order_id}/approve")
def approve(  # noqa: PLR0913, PLR0917 - one per field of the form
    core: CoreDep,
    caller: CallerDep,
    order_id: str,
    call: CallField = None,
    comment: Annotated[str, Form()] = "",
    always: Annotated[bool, Form()] = False,
) -> Response:
    steering.approve(core, caller, order_id, ApproveRequest(call=call, comment=comment, always=always))
    return RedirectResponse(f"/orders/{order_id}", 303)


@router.post("/{order_id}/deny")
def deny(
    core: CoreDep, caller: CallerDep, order_id: str, call: CallField = None, comment: Annotated[str, Form()] = ""
) -> Response:
    steering.deny(core, caller, order_id, DenyRequest(call=call, comment=comment))
    return RedirectResponse(f"/orders/{order_id}", 303)


def _head(order: OrderSummary) -> dict[str, Any]:
    ended = OrderStatus(order.status) in ENDED
    return {
        "order": order,
        "ended": ended,
        "can_cancel": not ended and order.status != OrderStatus.CANCELING,
        "can_run_again": order.status in {OrderStatus.FAILED, OrderStatus.CANCELED},
    }
