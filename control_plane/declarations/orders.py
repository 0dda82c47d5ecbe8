"""Work orders: one prompt each, to be carried out on one project."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from control_plane.declarations.operation import (
    ADDS,
    ENDS,
    READS,
    About,
    ByHand,
    Operation,
    Tool,
)
from control_plane.documents.base import Request
from control_plane.documents.orders import OrderDocument, OrderSummary, SayRequest, SubmitRequest
from shared.states import OrderStatus

MAX_LISTED = 1000
ORDER_ID = About("order", "The order's id: 12 hexadecimal characters.", source="orders:id")


class OrderFilter(Request):
    status: Annotated[OrderStatus | None, About("status", "Only orders in this state.", absent="all")] = None
    project: Annotated[str | None, About("project", "Slug.", source="projects:slug", absent="all")] = None
    drone: Annotated[str | None, About("drone", "Name.", absent="all")] = None
    limit: Annotated[int, About("limit", "At most so many, the newest first.")] = Field(100, ge=1, le=MAX_LISTED)


class CancelRequest(Request):
    """Why; shown on the order."""

    reason: Annotated[str, About("reason", "Why, in one sentence; shown on the order.")] = Field("", max_length=1000)


NAMES = {"order_id": Annotated[str, Field(max_length=64), ORDER_ID]}

SUBMIT = Operation(
    name="submit",
    role="operator",
    route="POST /orders",
    status=201,
    errors=(404, 409, 412, 413),
    run="orders.reading:submit",
    idempotent=True,
    request=SubmitRequest,
    answer=OrderDocument,
    summary="Submit an order",
    more="201 means durable: the order is in the database and will be done, or will say why it waits.",
    tool=ByHand("submit_order", "its answer is shortened for a model"),
    command=ByHand("submit", "it reads the prompt from stdin, and follows"),
)
LIST = Operation(
    name="list_orders",
    role="viewer",
    route="GET /orders",
    run="orders.reading:list_orders",
    request=OrderFilter,
    answer=list[OrderSummary],
    summary="Orders, newest first",
    tool=Tool(
        "list_orders",
        "List work orders",
        READS,
        "The work orders of the organization, newest first, without their steps: status, reason (why it waits or how "
        "it ended), response, branch, cost. The turns of agents on tasks are orders too; agent and task name them.",
        about={
            "status": "Only orders in this state. Default: all.",
            "project": "Only orders of this project (slug). Default: all.",
            "drone": "Only orders of this drone (name). Default: all.",
        },
        defaults={"limit": 20},
    ),
    command=ByHand("orders", "its times are relative, and its prompts are cut to the terminal"),
)
SHOW = Operation(
    name="show_order",
    role="viewer",
    route="GET /orders/{order_id}",
    names=NAMES,
    errors=(404,),
    run="orders.reading:show_order",
    answer=OrderDocument,
    summary="All that is known of an order",
    tool=ByHand("get_order", "its answer is shortened for a model unless it asks for all"),
    command=ByHand("show", "it renders steps"),
)
CANCEL = Operation(
    name="cancel_order",
    role="operator",
    route="POST /orders/{order_id}/cancel",
    names=NAMES,
    errors=(404, 409),
    run="orders.canceling:cancel",
    request=CancelRequest,
    answer=OrderSummary,
    summary="Cancel an order",
    more="Returns when it is recorded; the order is `canceled` once the drone's receipt is there.",
    tool=Tool(
        "cancel_order",
        "Cancel a work order",
        ENDS,
        "Stop a work order that has not ended. Returns when that is recorded: the status is canceling until its drone "
        "has ended every process, then canceled. What it changed so far is kept; retry_order begins it anew. "
        "For operators.",
    ),
    command=ByHand("cancel", "it waits for the receipt"),
)
SAY = Operation(
    name="say",
    role="operator",
    route="POST /orders/{order_id}/say",
    names=NAMES,
    errors=(404, 409),
    run="orders.steering:say",
    request=SayRequest,
    answer=OrderSummary,
    summary="Say something to an order",
    more="Its run hears it after its current calls, with `after` when the model stops, with `interrupt` at once.",
    tool=Tool(
        "say_to_order",
        "Say something to a running order",
        ADDS,
        "Say something to the agent of an order that has not ended: it hears it after the calls it makes just now. "
        "A word is never lost: one that has not been taken up is in get_order's unheard. After the end submit a new "
        "order with the same session instead. For operators.",
        about={
            "text": "What the agent is to hear: a correction, a hint, an answer.",
            "after": "true: only when the model stops, as a further task. Default: after the calls it makes just now.",
            "interrupt": "true: at once; what runs now is broken off.",
        },
    ),
    command=ByHand("say", "`-` reads the text from stdin"),
)
