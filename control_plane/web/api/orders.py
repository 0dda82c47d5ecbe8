"""Work orders: submit, list, look into, steer, cancel."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from control_plane.documents.orders import (
    ApproveRequest,
    DecideRequest,
    OrderSummary,
    ResumeRequest,
    StepDocument,
)
from control_plane.operations.orders import reading, retrying, steering
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.openapi import errors

router = APIRouter(prefix="/orders", tags=["orders"])

OrderId = Annotated[str, Path(description="The order's id: 12 hexadecimal characters.", max_length=64)]
MAX_LISTED = 1000


@router.get(
    "/{order_id}/patch",
    summary="The patch against the base commit",
    response_class=Response,
    responses={200: {"content": {"text/x-diff": {}}}, **errors(401, 404)},
)
def show_patch(core: CoreDep, caller: CallerDep, order_id: OrderId) -> Response:
    """Empty if nothing changed, 404 while there is none yet."""
    patch = reading.patch_of(core, caller, order_id)
    name = f'attachment; filename="{order_id}.patch"'
    return Response(patch, media_type="text/x-diff", headers={"Content-Disposition": name})


@router.post(
    "/{order_id}/retry", summary="Run an order again from its beginning", responses=errors(401, 403, 404, 409, 412)
)
def retry(core: CoreDep, caller: CallerDep, order_id: OrderId) -> OrderSummary:
    """For an order that failed or was canceled: the same order, in a fresh workspace."""
    return retrying.retry(core, caller, order_id)


@router.post(
    "/{order_id}/resume",
    summary="Let an order go on from its last checkpoint",
    responses=errors(401, 403, 404, 409, 412),
)
def resume(core: CoreDep, caller: CallerDep, order_id: OrderId, request: ResumeRequest | None = None) -> OrderSummary:
    """For an order that failed or was canceled. Its limits count anew; those that are given are set with it."""
    return retrying.resume(core, caller, order_id, request or ResumeRequest())


@router.post("/{order_id}/approve", summary="Let a call that waits be run", responses=errors(401, 403, 404, 409))
def approve(core: CoreDep, caller: CallerDep, order_id: OrderId, request: ApproveRequest | None = None) -> OrderSummary:
    """The first decision counts. With `always` the same command needs no approval in later orders of the session."""
    return steering.approve(core, caller, order_id, request or ApproveRequest())


@router.post("/{order_id}/deny", summary="Refuse a call that waits", responses=errors(401, 403, 404, 409))
def deny(core: CoreDep, caller: CallerDep, order_id: OrderId, request: DecideRequest | None = None) -> OrderSummary:
    """The model is told, with the comment; the run goes on."""
    return steering.deny(core, caller, order_id, request or DecideRequest())


@router.get("/{order_id}/steps", summary="Steps behind a number, in order", responses=errors(401, 404))
def list_steps(
    core: CoreDep,
    caller: CallerDep,
    order_id: OrderId,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = MAX_LISTED,
) -> list[StepDocument]:
    return reading.steps_after(core, caller, order_id, after, limit)


@router.get(
    "/{order_id}/log/{seq}",
    summary="The full output of a tool result",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **errors(401, 404)},
)
def show_log(
    core: CoreDep, caller: CallerDep, order_id: OrderId, seq: Annotated[int, Path(ge=1, le=2**53)]
) -> Response:
    """Up to 50 MB: head and tail of what was longer."""
    return Response(reading.log_of(core, caller, order_id, seq), media_type="text/plain; charset=utf-8")
