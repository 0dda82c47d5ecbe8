"""Several orders side by side."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.comparison import ComparisonAddress, comparison, race_compared
from control_plane.web.pages.frame import frame_for
from control_plane.web.rendering import page, wants_part

router = APIRouter(include_in_schema=False)


@router.get("/compare")
def compare(
    request: Request, core: CoreDep, caller: CallerDep, file: Annotated[str, Query(max_length=8)] = ""
) -> Response:
    """Up to six orders, or those of a race, and the changes of one file in each."""
    asked = ComparisonAddress.of(request.query_params, file)
    found = race_compared(core, caller, asked)
    asked = asked.of_race(found) if found is not None else asked
    part = wants_part(request)
    topics = [f"order:{each}" for each in asked.ids]
    around = frame_for(request, caller, "orders", topics)
    race = found.race if found is not None else None
    context = {**around, **comparison(core, caller, asked), "topics": topics, "asked": asked, "race": race}
    exists = found is not None or any(column.order for column in context["columns"]) or not (asked.ids or asked.race)
    return page("compare/columns.html" if part else "compare/page.html", context, 200 if exists else 404)
