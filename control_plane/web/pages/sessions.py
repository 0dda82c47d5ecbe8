"""The list of sessions, and the page of one: its conversation up to the turn that it is at."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import Response

from control_plane.declarations import sessions as declared
from control_plane.operations import sessions
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.conversation.view import view_of_session
from control_plane.web.forms.filters import Filters
from control_plane.web.pages.conversation_page import conversation_page
from control_plane.web.pages.frame import frame, frame_for
from control_plane.web.rendering import page, wants_part

router = APIRouter(prefix="/sessions", include_in_schema=False)


@router.get("")
def list_sessions(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """The sessions with the newest turns, narrowed by what the address says."""
    filters = Filters.of("/sessions", declared.LIST, request.query_params)
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


@router.get("/{session_id}")
def show_session(request: Request, core: CoreDep, caller: CallerDep, session_id: str) -> Response:
    """The running turn, else the last one, with those before it."""
    session = sessions.show(core, caller, session_id)
    shown = session.running or next((each.turn.order for each in session.entries if each.is_leaf and each.turn), None)
    topics = [f"session:{session.id}", *([f"order:{shown}"] if shown else [])]
    around = frame(request, caller, "sessions", topics)
    return conversation_page(request, caller, around, view_of_session(core, caller, session.id))
