"""Parts of a conversation that a page fetches when the reader asks for them: calls of a folded line, earlier parts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from control_plane.documents.orders import StepDocument
from control_plane.operations.orders import reading
from control_plane.operations.orders.step_reading import StepRange, read_steps
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.conversation.grouping import chat_of
from control_plane.web.conversation.view import view_of_order
from control_plane.web.conversation.window import Cursor, window
from control_plane.web.pages.frame import rights
from control_plane.web.pages.panels import panel_page
from control_plane.web.rendering import page
from shared.states import OrderStatus

router = APIRouter(prefix="/orders", include_in_schema=False)

Seq = Annotated[int, Query(ge=0, le=2**53)]
MOST_STEPS = 400
MOST_CHILD_STEPS = 2000


@router.get("/{order_id}/steps")
def show_steps(  # noqa: PLR0913, PLR0917 - the parts of an address
    request: Request,
    core: CoreDep,
    caller: CallerDep,
    order_id: str,
    after: Seq = 0,
    before: Seq = 2**53,
    known: Seq = 0,
) -> Response:
    """The steps of a folded line, each call on its own; of those that a page knows up to a step, what changed since."""
    order = reading.order_summary(core, caller, order_id)
    steps = read_steps(core, caller, order.id, StepRange(after, before, limit=MOST_STEPS))
    kept = [step.model_copy(update={"undone": False}) for step in steps]
    active = order.status in {OrderStatus.RUNNING, OrderStatus.AWAITING_APPROVAL}
    chat = chat_of(order.id, kept, active=active, known=known)
    return panel_page(request, caller, order, "steps", {"blocks_of_fold": chat.blocks, "last": chat.last})


@router.get("/{order_id}/children")
def show_children(request: Request, core: CoreDep, caller: CallerDep, order_id: str, call: Seq) -> Response:
    """What the sub-agents of one call did; `call` is its step."""
    order = reading.order_summary(core, caller, order_id)
    asked = read_steps(core, caller, order.id, StepRange(call - 1, call + 1, kinds=("tool_call",)))
    name = asked[0].model_dump().get("call_id") if asked else None
    of_children = read_steps(core, caller, order.id, StepRange(call, kinds=("child",), limit=MOST_CHILD_STEPS))
    steps = [inner_step(step) for step in of_children if name and step.model_dump().get("call_id") == name]
    chat = chat_of(order.id, steps, active=False)
    return panel_page(request, caller, order, "steps", {"blocks_of_fold": chat.blocks, "last": 0})


def inner_step(child: StepDocument) -> StepDocument:
    """A step of a child agent as a step of its own."""
    inner = child.model_dump().get("step")
    own = {"seq": child.seq, "run": child.run, "at": child.at, "undone": False}
    return StepDocument(**{**(inner if isinstance(inner, dict) else {}), "kind": _kind(inner), **own})


def _kind(inner: object) -> str:
    kind = inner.get("kind") if isinstance(inner, dict) else None
    return kind if isinstance(kind, str) and kind != "child" else "step"


@router.get("/{order_id}/earlier")
def show_earlier(core: CoreDep, caller: CallerDep, order_id: str, before: str) -> Response:
    """The part of the conversation before a cursor, and the cursor of the part before that."""
    view = view_of_order(core, caller, order_id)
    shown = window(core, caller, view.turns, Cursor.of(before))
    return page("session/earlier.html", {**rights(core, caller), "window": shown, "order": view.order})
