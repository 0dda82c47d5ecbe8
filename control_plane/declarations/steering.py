"""Steering: user input for an order that has not ended, and decisions about its waiting calls."""

from __future__ import annotations

from control_plane.declarations.operation import ADDS, SETS, SETS_WORK, ByHand, Operation, Tool
from control_plane.declarations.orders import NAMES
from control_plane.documents.orders import ApproveRequest, DecideRequest, OrderSummary, SayRequest

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
DECISION = {
    "call": "The id of the call, as in the order's waiting_for.call_id. Default: the call that waits longest.",
    "comment": "What the model, and whoever reads it later, is told with the decision.",
}
APPROVE = Operation(
    name="approve",
    role="operator",
    route="POST /orders/{order_id}/approve",
    names=NAMES,
    errors=(404, 409),
    run="orders.steering:approve",
    request=ApproveRequest,
    answer=OrderSummary,
    summary="Let a call that waits be run",
    more="The first decision counts. With `always` the same command needs no approval in later orders of the session.",
    tool=Tool(
        "approve_call",
        "Let a waiting call be run",
        SETS_WORK,
        "Let the call be run that an order in the state awaiting_approval waits with; get_order's waiting_for says "
        "which command it is and why it waits. Ask your user first: the command then runs on the drone. The first "
        "decision counts. For operators.",
        about={
            **DECISION,
            "always": "true: the same command needs no approval in later orders of the session either.",
        },
    ),
    command=ByHand("approve", "it says what to do next"),
)
DENY = Operation(
    name="deny",
    role="operator",
    route="POST /orders/{order_id}/deny",
    names=NAMES,
    errors=(404, 409),
    run="orders.steering:deny",
    request=DecideRequest,
    answer=OrderSummary,
    summary="Refuse a call that waits",
    more="The model is told, with the comment; the run goes on.",
    tool=Tool(
        "deny_call",
        "Refuse a waiting call",
        SETS,
        "Refuse the call that an order in the state awaiting_approval waits with. The agent is told so, with the "
        "comment, and goes on without it. The first decision counts. For operators.",
        about=DECISION,
    ),
    command=ByHand("deny", "it says what to do next"),
)
