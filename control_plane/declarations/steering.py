"""Steering: user input for an order that has not ended, and decisions about its waiting calls."""

from __future__ import annotations

from control_plane.declarations.operation import ADDS, SETS, SETS_WORK, ByHand, Operation, Tool
from control_plane.declarations.orders import NAMES
from control_plane.documents.orders import ApproveRequest, DenyRequest, OrderSummary, SayRequest

SAY = Operation(
    name="say",
    role="operator",
    route="POST /orders/{order_id}/say",
    names=NAMES,
    errors=(404, 409),
    run="orders.steering:say",
    request=SayRequest,
    answer=OrderSummary,
    summary="Send a message to an order",
    more="The run reads it after its current step; with `after`, when the model stops; with `interrupt`, at once.",
    tool=Tool(
        "say_to_order",
        "Send a message to a running order",
        ADDS,
        "Send a message to the agent of an order that has not ended. By default the agent reads it after its current "
        "step. Messages are never lost: get_order lists those not read yet under unheard. If the order has ended, "
        "submit a new order with the same session instead. Requires the operator role.",
        about={
            "text": "The message: a correction, a hint or an answer.",
            "after": "true: deliver it when the model stops, as a further request. Default: after the current step.",
            "interrupt": "true: deliver it at once and abort what is running now. Default: false.",
        },
    ),
    command=ByHand("say", "`-` reads the text from stdin"),
)
DECISION = {
    "call": "Id of the call, as in the order's waiting_for.call_id. Default: the call that has waited longest.",
    "comment": "Explanation, recorded with the decision; the model reads it if the call is denied.",
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
    summary="Approve a pending call",
    more="The first decision counts. With `always`, the same command needs no approval in later orders of the session.",
    tool=Tool(
        "approve_call",
        "Approve a pending call",
        SETS_WORK,
        "Approve the pending call of an order with status awaiting_approval; get_order's waiting_for shows the call "
        "and why it needs approval. Ask your user first: the call then runs on the drone. The first decision counts. "
        "Requires the operator role.",
        about={
            **DECISION,
            "raise_usd": "For an order at its cost limit: USD by which it is raised. Default: the same amount again.",
            "always": "true: the same command needs no approval in later orders of the session. Default: false.",
        },
    ),
    command=ByHand("approve", "it prints the next step"),
)
DENY = Operation(
    name="deny",
    role="operator",
    route="POST /orders/{order_id}/deny",
    names=NAMES,
    errors=(404, 409),
    run="orders.steering:deny",
    request=DenyRequest,
    answer=OrderSummary,
    summary="Deny a pending call",
    more="The model receives the denial with the comment, and the run continues.",
    tool=Tool(
        "deny_call",
        "Deny a pending call",
        SETS,
        "Deny the pending call of an order with status awaiting_approval. The agent receives the denial with your "
        "comment and continues without the call. The first decision counts. Requires the operator role.",
        about={**DECISION, "finish": "true: an order at its cost limit writes a summary and ends. Default: false."},
    ),
    command=ByHand("deny", "it prints the next step"),
)
