"""The list of sessions."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import Response

from control_plane.declarations import sessions as declared
from control_plane.operations.sessions import reading
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.forms.filters import Filters
from control_plane.web.pages.frame import frame_for
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
        **filters.listed(request, "sessions", partial(reading.list_, core, caller)),
        "filters": filters,
    }
    if part:
        return page("sessions/list.html", context)
    return page("sessions/page.html", {**context, "offers": filters.offers(core, caller)})
