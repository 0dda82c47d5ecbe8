"""The hand-written routes of work orders: they answer with files."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Response

from control_plane.operations.orders import reading
from control_plane.web.access import CallerDep, CoreDep, api_router
from control_plane.web.openapi import errors

router = api_router("orders", "/orders")

OrderId = Annotated[
    str, Path(description="The order's id, a unique prefix of it, or @last (your newest order).", max_length=64)
]


@router.get(
    "/{order_id}/patch",
    summary="Download the patch against the base commit",
    response_class=Response,
    responses={200: {"content": {"text/x-diff": {}}}, **errors(401, 403, 404)},
)
def show_patch(core: CoreDep, caller: CallerDep, order_id: OrderId) -> Response:
    """Empty if nothing changed; 404 if there is no patch yet."""
    patch = reading.patch_of(core, caller, order_id)
    name = f'attachment; filename="{order_id}.patch"'
    return Response(patch, media_type="text/x-diff", headers={"Content-Disposition": name})


@router.get(
    "/{order_id}/raw/{seq}",
    summary="Download the provider's raw answer",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **errors(401, 403, 404)},
)
def show_raw_answer(
    core: CoreDep, caller: CallerDep, order_id: OrderId, seq: Annotated[int, Path(ge=1, le=2**53)]
) -> Response:
    """JSON Lines, as the provider streamed them, without known secrets."""
    return Response(reading.raw_of(core, caller, order_id, seq), media_type="text/plain; charset=utf-8")


@router.get(
    "/{order_id}/log/{seq}",
    summary="Download the full output of a tool result",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **errors(401, 403, 404)},
)
def show_log(
    core: CoreDep, caller: CallerDep, order_id: OrderId, seq: Annotated[int, Path(ge=1, le=2**53)]
) -> Response:
    """Up to 50 MB; of longer output, the beginning and the end."""
    return Response(reading.log_of(core, caller, order_id, seq), media_type="text/plain; charset=utf-8")
