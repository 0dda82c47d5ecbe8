"""Steering: user input for an order that has not ended, and decisions about its waiting calls."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from control_plane.contract.declarations.operation import (
    ADDS,
    ENDS,
    SETS,
    SETS_WORK,
    About,
    ByHand,
    Command,
    NoDoor,
    Operation,
    Tool,
)
from control_plane.contract.declarations.orders import NAMES
from control_plane.contract.documents.base import Request
from control_plane.contract.documents.orders import OrderSummary, SteeringMessageDocument


class WaitingMessage(SteeringMessageDocument):
    """A message that the agent has not read."""

    id: Annotated[str, About("message")]
    when: Annotated[str, About("delivered")]
    """steer: after the current step; follow_up: when the model stops; interrupt: at once."""
    state: Annotated[str, About("state")]
    user: Annotated[str, About("from")]
    text: Annotated[str, About("text")]


class SayRequest(Request):
    text: Annotated[str, About("message", "The message; the agent reads it after its current step.", input="stdin")]
    after: Annotated[bool, About("when it has finished", "Deliver it when the model stops.")] = False
    interrupt: Annotated[bool, About("now", "Interrupt the current step and deliver it at once.")] = False
    alone: Annotated[bool, About("alone", "The agent answers it before it reads the next message.")] = False


_CALL = "Id of the call, as in the order's `waiting_for`."
_DIGEST = About(
    "digest", "The `waiting_for.digest` that was read: refused if something else waits by now.", absent="not checked"
)


class AnswerRequest(Request):
    text: Annotated[str, About("answer", "A choice of the question, its number, or any other text.")]
    call: Annotated[str | None, About("call", _CALL, absent="the question that has waited longest", metavar="ID")] = (
        Field(None, max_length=1000)
    )
    digest: Annotated[str | None, _DIGEST] = Field(None, max_length=64)


class DecideRequest(Request):
    call: Annotated[str | None, About("call", _CALL, absent="the one that has waited longest", metavar="ID")] = Field(
        None, max_length=1000
    )
    digest: Annotated[str | None, _DIGEST] = Field(None, max_length=64)
    comment: Annotated[str, About("comment", "The reason; the model reads it if the call is denied.")] = ""


class DenyRequest(DecideRequest):
    finish: Annotated[
        bool,
        About("let it finish", "For an order at its cost limit: one more answer, with a summary."),
    ] = False


class ApproveRequest(DecideRequest):
    raise_usd: Annotated[
        float | None,
        About(
            "raise the limit by",
            "For an order at its cost limit, in USD.",
            unit="USD",
            absent="the same amount again",
            flag="--raise",
        ),
    ] = Field(None, gt=0, le=1e6, allow_inf_nan=False)
    raise_steps: Annotated[
        int | None,
        About("raise the steps by", "For an order at its limit of steps.", absent="as many again", metavar="N"),
    ] = Field(None, ge=1, le=1_000_000)
    raise_seconds: Annotated[
        float | None,
        About("raise the time by", "For an order at its time limit, in seconds.", absent="as long again", metavar="N"),
    ] = Field(None, gt=0, le=1e8, allow_inf_nan=False)
    always: Annotated[bool, About("always allow", "Also allow the same command in later orders of the session.")] = (
        False
    )


class QueueFilter(Request):
    message: Annotated[
        str | None, About("message", "Id of the message, as `fleet queue ls` shows it.", absent="all messages")
    ] = Field(None, max_length=20)


SAY = Operation(
    name="say",
    role="operator",
    route="POST /orders/{order_id}/say",
    names=NAMES,
    errors=(404, 409),
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
        },
    ),
    command=ByHand("say", "it prints when the agent will read the message"),
)
QUEUE = Operation(
    name="list_queue",
    role="viewer",
    route="GET /orders/{order_id}/queue",
    names=NAMES,
    errors=(404,),
    answer=list[WaitingMessage],
    summary="List the messages that the agent of an order has not read",
    tool=NoDoor("get_order lists them under unheard"),
    command=Command(
        "queue ls",
        "List the messages that the agent of an order has not read.",
        "fleet queue ls ORDER",
        columns=("id", "when", "state", "user", "text"),
        empty="no messages are waiting",
    ),
)
CLEAR = Operation(
    name="clear_queue",
    role="operator",
    route="DELETE /orders/{order_id}/queue",
    names=NAMES,
    errors=(404, 409),
    request=QueueFilter,
    answer=list[WaitingMessage],
    summary="Take back messages that the agent of an order has not read",
    more="A message that its run may be reading right now is `taking_back` until the run has said which came first.",
    tool=Tool(
        "take_back_messages",
        "Take back messages to an order",
        ENDS,
        "Take back messages that the agent of an order has not read: one of get_order's unheard by its id, or all of "
        "them. state is taken_back, or taking_back while the run decides whether the agent was faster; get_order then "
        "shows it. Requires the operator role.",
        about={
            "message": "Id of the message, as in get_order's unheard. Default: all messages.",
        },
    ),
    command=Command(
        "queue clear",
        "Take back messages that the agent of an order has not read.",
        "fleet queue clear ORDER --message 12",
        columns=("id", "when", "state", "user", "text"),
        empty="no messages were waiting",
    ),
)
DIGEST = "The order's waiting_for.digest, as you read it: refused if it waits for something else by now."
ANSWER = Operation(
    name="answer_order",
    role="operator",
    route="POST /orders/{order_id}/answer",
    names=NAMES,
    errors=(404, 409),
    request=AnswerRequest,
    answer=OrderSummary,
    summary="Answer the question of an order",
    more="The first answer counts. An answer is a choice of the question, the number of one, or any other text.",
    tool=Tool(
        "answer_order",
        "Answer the question of a work order",
        SETS_WORK,
        "Answer the question that an order with status awaiting_approval asks; get_order's waiting_for has kind "
        "question then, with text, choices, default and deadline. Ask your user first, unless they left the answer to "
        "you. The first answer counts. For kind plan call approve_plan or "
        "send_back_plan, for others approve_call or deny_call. Requires the operator role.",
        about={
            "text": "The answer: any text, one of the question's choices, or the number of a choice from 1.",
        },
    ),
    command=ByHand("answer", "without TEXT it shows the question and asks"),
)
DECISION = {
    "call": "Id of the call, as in the order's waiting_for.call_id. Default: the call that has waited longest.",
    "digest": DIGEST,
    "comment": "Explanation, recorded with the decision; the model reads it if the call is denied.",
}
APPROVE = Operation(
    name="approve",
    role="operator",
    route="POST /orders/{order_id}/approve",
    names=NAMES,
    errors=(404, 409),
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
        about={
            **DECISION,
        },
    ),
    command=ByHand("deny", "it prints the next step"),
)
