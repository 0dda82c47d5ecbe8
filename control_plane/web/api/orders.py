"""The hand-written routes of work orders: they answer with files, or with the order's live stream."""

from __future__ import annotations

import functools
import json
from typing import Annotated

from anyio import to_thread
from fastapi import Header, Path, Query, Request, Response
from starlette.responses import StreamingResponse

from control_plane.operations.orders import reading
from control_plane.operations.orders.trajectories import trajectory_of
from control_plane.web.access import CallerDep, CoreDep, api_router, identify
from control_plane.web.conversation.export import exported_page
from control_plane.web.openapi import errors
from control_plane.web.stream import OrderStream
from shared.trajectories import FORMAT

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


@router.get(
    "/{order_id}/export",
    summary="Download an order as a page that needs no server",
    response_class=Response,
    responses={200: {"content": {"text/html": {}}}, **errors(401, 403, 404)},
)
def export_order(core: CoreDep, caller: CallerDep, order_id: OrderId) -> Response:
    """One HTML file that loads nothing: prompt, result, changes and conversation, as far as there are any."""
    order, patch = reading.exported(core, caller, order_id)
    name = f'attachment; filename="{order.id}.html"'
    content = exported_page(order, patch, core.clock.now())
    return Response(content, media_type="text/html", headers={"Content-Disposition": name})


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


# --- the live stream, as server-sent events -------------------------------------------------------

HEADERS = {"Cache-Control": "no-cache, no-store", "X-Accel-Buffering": "no"}
LastEventId = Annotated[
    int, Header(ge=0, le=2**53, description="Number of the last step received; sent on reconnecting.")
]
After = Annotated[int, Query(ge=0, le=2**53, description="Same as Last-Event-ID, for a browser's first connection.")]


class EventStream(StreamingResponse):
    """Event bytes as they arrive. The framework's own class would encode them, and send pings in unread comments."""

    media_type = "text/event-stream"


@router.get(
    "/{order_id}/events",
    summary="Follow an order live",
    response_class=Response,
    responses={200: {"content": {"text/event-stream": {}}}, **errors(401, 403, 404)},
)
async def follow_order(  # noqa: PLR0913, PLR0917 - one per part of the request
    core: CoreDep,
    caller: CallerDep,
    order_id: OrderId,
    request: Request,
    last_event_id: LastEventId = 0,
    after: After = 0,
) -> EventStream:
    """Events: `step` (its id is its number), `delta` (run, kind, text: streamed text, never stored), `order` (the order
    without steps, when it changed), `heartbeat` (every 10 s), `end` (the whole document; the stream closes).
    """
    order = await to_thread.run_sync(reading.order_summary, core, caller, order_id)
    still_allowed = functools.partial(identify, core, request.scope)
    stream = OrderStream(core, request.app.state.live, caller, order.id, still_allowed)
    return EventStream(stream.events(max(after, last_event_id)), headers=HEADERS)
