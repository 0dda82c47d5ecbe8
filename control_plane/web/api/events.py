"""An order's live stream, as server-sent events."""

from __future__ import annotations

import functools
from typing import Annotated

from anyio import to_thread
from fastapi import Header, Query, Request, Response
from starlette.responses import StreamingResponse

from control_plane.operations.orders import reading
from control_plane.web.access import CallerDep, CoreDep, api_router, identify
from control_plane.web.api.orders import OrderId
from control_plane.web.openapi import errors
from control_plane.web.stream import OrderStream

router = api_router("orders", "/orders")

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
