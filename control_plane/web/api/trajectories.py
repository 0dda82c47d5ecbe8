"""The trajectory of an order's run, for other tools and for `drone replay`."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import Query, Response

from control_plane.operations.orders.trajectories import trajectory_of
from control_plane.web.access import CallerDep, CoreDep, api_router
from control_plane.web.api.orders import OrderId
from control_plane.web.openapi import errors
from shared.trajectories import FORMAT

router = api_router("orders", "/orders")


@router.get(
    "/{order_id}/trajectory",
    summary=f"Download a run as a document in {FORMAT}",
    response_class=Response,
    responses={200: {"content": {"application/json": {"schema": {"type": "object"}}}}, **errors(401, 403, 404)},
)
def show_trajectory(
    core: CoreDep,
    caller: CallerDep,
    order_id: OrderId,
    run: Annotated[str | None, Query(description="Run id (default: the run whose work was kept).")] = None,
) -> Response:
    """Contains the steps so far while the run is active; 404 before a run has started."""
    document = trajectory_of(core, caller, order_id, run or None)
    name = f'attachment; filename="{order_id}.traj.json"'
    content = json.dumps(document, indent=1, allow_nan=False)
    return Response(content, media_type="application/json", headers={"Content-Disposition": name})
