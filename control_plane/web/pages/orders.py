"""Orders and sessions: their lists, the page that submits an order, and the conversation, whole and in parts."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from control_plane.contract.declarations import orders as declared
from control_plane.contract.declarations.sessions import LIST as LIST_SESSIONS
from control_plane.operations import sessions
from control_plane.operations.orders import reading
from control_plane.operations.orders.next_turn import request_again
from control_plane.operations.orders.step_reading import StepRange, read_steps
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.conversation.grouping import chat_of, inner_step
from control_plane.web.conversation.view import view_of_order, view_of_session
from control_plane.web.conversation.window import Cursor, window
from control_plane.web.forms.actions import filled_form
from control_plane.web.forms.filters import Filters
from control_plane.web.pages.conversation_page import ShownSoFar, conversation_news, conversation_page, later_steps
from control_plane.web.pages.frame import frame, frame_for, rights
from control_plane.web.pages.panels import panel_page
from control_plane.web.rendering import page, wants_part
from shared.states import OrderStatus

router = APIRouter(include_in_schema=False)


@router.get("/orders")
def list_orders(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """The list, narrowed by what the address says."""
    filters = Filters.of("/orders", declared.LIST, request.query_params)
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


@router.get("/orders/new")
def new_order(
    request: Request, core: CoreDep, caller: CallerDep, source: Annotated[str, Query(alias="from")] = ""
) -> Response:
    """The form of a new order, filled with what the order `from` was submitted with, and with values in the address."""
    given = request_again(core, caller, source) if source else None
    return filled_form(request, core, caller, declared.SUBMIT, given)


@router.get("/orders/{order_id}")
def show_order(request: Request, core: CoreDep, caller: CallerDep, order_id: str) -> Response:
    """The conversation up to this order, readable without scripts; with scripts, it updates automatically."""
    order = reading.order_summary(core, caller, order_id)
    around = frame(request, caller, "orders", [f"order:{order.id}", f"session:{order.session}"])
    return conversation_page(request, caller, around, view_of_order(core, caller, order.id))


@router.get("/sessions")
def list_sessions(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """The sessions with the newest turns, narrowed by what the address says."""
    filters = Filters.of("/sessions", LIST_SESSIONS, request.query_params)
    part = wants_part(request)
    around = frame_for(request, caller, "sessions", [filters.topic])
    context = {
        **around,
        **filters.listed(request, "sessions", partial(sessions.list_, core, caller)),
        "filters": filters,
    }
    if part:
        return page("sessions/list.html", context)
    return page("sessions/page.html", {**context, "offers": filters.offers(core, caller)})


@router.get("/sessions/{session_id}")
def show_session(request: Request, core: CoreDep, caller: CallerDep, session_id: str) -> Response:
    """The running turn, else the last one, with those before it."""
    session = sessions.show(core, caller, session_id)
    shown = session.running or next((each.turn.order for each in session.entries if each.is_leaf and each.turn), None)
    topics = [f"session:{session.id}", *([f"order:{shown}"] if shown else [])]
    around = frame(request, caller, "sessions", topics)
    return conversation_page(request, caller, around, view_of_session(core, caller, session.id))


# --- parts of a conversation, which a page fetches later ------------------------------------------

Seq = Annotated[int, Query(ge=0, le=2**53)]
MOST_STEPS = 400
MOST_CHILD_STEPS = 2000


@router.get("/orders/{order_id}/news")
def order_news(core: CoreDep, caller: CallerDep, order_id: str, shown: Annotated[ShownSoFar, Query()]) -> Response:
    """What changed since step `resume`: later parts of the conversation, and everything around it."""
    view = view_of_order(core, caller, order_id, fork=shown.session)
    return conversation_news(core, caller, rights(core, caller), view, shown)


@router.get("/orders/{order_id}/later")
def later_blocks(core: CoreDep, caller: CallerDep, order_id: str, shown: Annotated[ShownSoFar, Query()]) -> Response:
    """Later parts of the conversation alone, which is much less work than all that may have changed."""
    return later_steps(core, caller, order_id, shown)


@router.get("/orders/{order_id}/earlier")
def show_earlier(core: CoreDep, caller: CallerDep, order_id: str, before: str) -> Response:
    """The part of the conversation before a cursor, and the cursor of the part before that."""
    view = view_of_order(core, caller, order_id)
    shown = window(core, caller, view.turns, Cursor.of(before))
    return page("session/earlier.html", {**rights(core, caller), "window": shown, "order": view.order})


@router.get("/orders/{order_id}/steps")
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
    of_calls = bool(steps) and not steps[0].undone
    if of_calls and len(steps) == MOST_STEPS:
        # A line has few calls, though each can have any number of steps of its sub-agents.
        steps = read_steps(core, caller, order.id, StepRange(after, before))
    kept = [step.model_copy(update={"undone": False}) for step in steps]
    active = order.status in {OrderStatus.RUNNING, OrderStatus.AWAITING_APPROVAL}
    chat = chat_of(order.id, kept, active=active, known=known)
    # What happened during the calls is beside their line.
    blocks = chat.blocks[:1] if of_calls else chat.blocks
    return panel_page(request, caller, order, "steps", {"blocks_of_fold": blocks, "last": chat.last})


@router.get("/orders/{order_id}/children")
def show_children(request: Request, core: CoreDep, caller: CallerDep, order_id: str, call: Seq) -> Response:
    """What the sub-agents of one call did; `call` is its step."""
    order = reading.order_summary(core, caller, order_id)
    asked = read_steps(core, caller, order.id, StepRange(call - 1, call + 1, kinds=("tool_call",)))
    name = asked[0].model_dump().get("call_id") if asked else None
    of_children = read_steps(core, caller, order.id, StepRange(call, kinds=("child",), limit=MOST_CHILD_STEPS))
    steps = [inner_step(step) for step in of_children if name and step.model_dump().get("call_id") == name]
    chat = chat_of(order.id, steps, active=False)
    return panel_page(request, caller, order, "steps", {"blocks_of_fold": chat.blocks, "last": 0})
