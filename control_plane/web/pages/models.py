"""The model providers with the results of their tests, and the prices that were set."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from control_plane.operations import prices, providers
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.pages.frame import frame_for
from control_plane.web.rendering import page, wants_part

router = APIRouter(prefix="/models", include_in_schema=False)


@router.get("")
def list_models(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """All providers and prices of the organization."""
    part = wants_part(request)
    around = frame_for(request, caller, "models", ["models"])
    context = {**around, "providers": providers.list_(core, caller), "prices": prices.list_(core, caller)}
    return page("models/list.html" if part else "models/page.html", context)
