"""Work orders: submit, list, look into, steer, cancel."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from control_plane.documents.orders import (
    ApproveRequest,
    DecideRequest,
    OrderDocument,
    OrderSummary,
    ResumeRequest,
    SayRequest,
    StepDocument,
    SubmitRequest,
)
from control_plane.operations.orders import reading, retrying, steering
from control_plane.operations.orders.canceling import cancel
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.openapi import errors
from shared.states import OrderStatus

router = APIRouter(prefix="/orders", tags=["orders"])

OrderId = Annotated[str, Path(description="The order's id: 12 hexadecimal characters.", max_length=64)]
MAX_LISTED = 1000
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        description="The same key with the same body gives the same order, for 7 days; with another body: 409.",
    ),
]


class CancelRequest(BaseModel):
    """Why; shown on the order."""

    model_config = ConfigDict(extra="forbid")
    reason: str = Field("", max_length=1000)


@router.post("", status_code=201, summary="Submit an order", responses=errors(401, 403, 404, 409, 412, 413))
def submit(
    core: CoreDep, caller: CallerDep, request: SubmitRequest, idempotency_key: IdempotencyKey = None
) -> OrderDocument:
    """201 means durable: the order is in the database and will be done, or will say why it waits."""
    return reading.submit(core, caller, request, idempotency_key)


@router.get("", summary="Orders, newest first", responses=errors(401))
def list_orders(  # noqa: PLR0913, PLR0917 - one per filter
    core: CoreDep,
    caller: CallerDep,
    status: OrderStatus | None = None,
    project: Annotated[str | None, Query(description="Slug.")] = None,
    drone: Annotated[str | None, Query(description="Name.")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 100,
) -> list[OrderSummary]:
    return reading.list_orders(core, caller, status, project, drone, limit)


@router.get("/{order_id}", summary="All that is known of an order", responses=errors(401, 404))
def show_order(core: CoreDep, caller: CallerDep, order_id: OrderId) -> OrderDocument:
    return reading.show_order(core, caller, order_id)


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


@router.post("/{order_id}/cancel", summary="Cancel an order", responses=errors(401, 403, 404, 409))
def cancel_order(
    core: CoreDep, caller: CallerDep, order_id: OrderId, request: CancelRequest | None = None
) -> OrderSummary:
    """Returns when it is recorded; the order is `canceled` once the drone's receipt is there."""
    return cancel(core, caller, order_id, request.reason if request else "")


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


@router.post("/{order_id}/say", summary="Say something to an order", responses=errors(401, 403, 404, 409))
def say(core: CoreDep, caller: CallerDep, order_id: OrderId, request: SayRequest) -> OrderSummary:
    """Its run hears it after its current calls, with `after` when the model stops, with `interrupt` at once."""
    return steering.say(core, caller, order_id, request)


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
