"""Plans: what an order's agent presents before it changes anything, and what users make of it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from control_plane.contract.declarations.operation import (
    OVERWRITES,
    READS,
    SETS,
    SETS_WORK,
    About,
    ByHand,
    Command,
    Operation,
    Tool,
)
from control_plane.contract.declarations.orders import NAMES
from control_plane.contract.documents.base import Request
from control_plane.contract.documents.orders import OrderSummary
from control_plane.contract.documents.plans import PlanDocument
from shared.plans import MAX_POINTS

REVISION = Annotated[
    int | None,
    About("revision", "The revision that was read; refused if the plan was edited since.", absent="the newest"),
]
ROUND = Annotated[
    int | None,
    About("round", "Which plan of the order was read; refused if the agent presented another.", absent="the newest"),
]


class EditPlanRequest(Request):
    text: Annotated[str, About("text", "The whole plan as Markdown.", input="file")]
    revision: REVISION = Field(None, ge=0)
    round: ROUND = Field(None, ge=0)


class ApprovePlanRequest(Request):
    points: Annotated[
        list[int] | None, About("points", "Numbers of the points to carry out.", absent="those that are ticked")
    ] = Field(None, max_length=MAX_POINTS)
    comment: Annotated[str, About("comment", "For the agent.")] = ""
    revision: REVISION = Field(None, ge=0)
    round: ROUND = Field(None, ge=0)


class SendBackPlanRequest(Request):
    text: Annotated[str, About("text", "What to change; the agent revises the plan with it.")]
    revision: REVISION = Field(None, ge=0)
    round: ROUND = Field(None, ge=0)


SHOW = Operation(
    name="show_plan",
    role="viewer",
    route="GET /orders/{order_id}/plan",
    names=NAMES,
    errors=(404,),
    answer=PlanDocument,
    summary="Show the plan of an order, with its report",
    tool=Tool(
        "get_plan",
        "Get the plan of a work order",
        READS,
        "Get the plan that an order's agent presented, as edited so far: its numbered points, which are ticked, and, "
        "once it is approved, what became of each (done, skipped, changed, not reported). text is the same in "
        "Markdown.",
    ),
    command=Command(
        "plan show",
        "Show the plan of an order, with its report.",
        "fleet plan show ORDER",
    ),
)
EDIT = Operation(
    name="edit_plan",
    role="operator",
    route="PUT /orders/{order_id}/plan",
    names=NAMES,
    errors=(404, 409, 413),
    request=EditPlanRequest,
    answer=PlanDocument,
    summary="Edit the plan that an order presented",
    more="The order keeps waiting: an edited plan still has to be approved or sent back.",
    tool=Tool(
        "edit_plan",
        "Edit the plan of a work order",
        OVERWRITES,
        "Replace the plan that an order presented by an edited one, as Markdown in the form that get_plan has as text: "
        "`# Title`, the summary, then points as `1. [x] What to do`, with `Files:` and `Verify:` lines below; `[ ]` "
        "drops a point. The order keeps waiting: call approve_plan or send_back_plan next. Requires the operator role.",
    ),
    command=ByHand("plan edit", "it opens an editor"),
)
APPROVE = Operation(
    name="approve_plan",
    role="operator",
    route="POST /orders/{order_id}/plan/approve",
    names=NAMES,
    errors=(404, 409),
    request=ApprovePlanRequest,
    answer=OrderSummary,
    summary="Approve the plan of an order, or some of its points",
    more="The first decision counts. The agent then carries out exactly the approved points.",
    tool=Tool(
        "approve_plan",
        "Approve the plan of a work order",
        SETS_WORK,
        "Approve the plan of an order with status awaiting_approval and waiting_for.kind plan, as edited, or only the "
        "points with these numbers. Ask your user first: the agent then changes files. The first decision counts. "
        "Requires the operator role.",
    ),
    command=ByHand("plan approve", "it takes the numbers as 1,3"),
)
SEND_BACK = Operation(
    name="send_back_plan",
    role="operator",
    route="POST /orders/{order_id}/plan/send-back",
    names=NAMES,
    errors=(404, 409),
    request=SendBackPlanRequest,
    answer=OrderSummary,
    summary="Send the plan of an order back to its agent",
    more="The agent revises it with the text, and presents it again.",
    tool=Tool(
        "send_back_plan",
        "Send the plan of a work order back",
        SETS,
        "Send the plan of an order back to its agent, which revises it with your text and presents it again; nothing "
        "is changed meanwhile. The first decision counts. Requires the operator role.",
    ),
    command=Command(
        "plan send-back",
        "Send the plan of an order back; its agent revises it with TEXT.",
        "fleet plan send-back ORDER 'Keep the old name as an alias'",
        arguments=("text",),
        done="{id} {status}: {reason}",
        then="  next  fleet plan show {id}",
    ),
)
