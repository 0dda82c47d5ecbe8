"""Work orders: one prompt each, for one project."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from control_plane.declarations.operation import (
    ENDS,
    READS,
    SETS_WORK,
    About,
    ByHand,
    NoDoor,
    Operation,
    Tool,
)
from control_plane.documents.base import Request
from control_plane.documents.orders import (
    OrderDocument,
    OrderSummary,
    ResumeRequest,
    StepDocument,
    SubmitRequest,
)
from shared.states import OrderStatus
from shared.trajectories import FORMAT

MAX_LISTED = 1000
MAX_SEQ = 2**53
ORDER_ID = About("order", "The order's id: 12 hexadecimal characters.", source="orders:id")


class OrderFilter(Request):
    status: Annotated[OrderStatus | None, About("status", "Only orders in this state.", absent="all")] = None
    project: Annotated[str | None, About("project", "Slug.", source="projects:slug", absent="all")] = None
    drone: Annotated[str | None, About("drone", "Name.", absent="all")] = None
    limit: Annotated[int, About("limit", "At most so many, the newest first.")] = Field(100, ge=1, le=MAX_LISTED)


class StepFilter(Request):
    after: Annotated[int, About("after", "Only steps with a higher number.")] = Field(0, ge=0, le=MAX_SEQ)
    limit: Annotated[int, About("limit", "At most so many, the first ones.")] = Field(MAX_LISTED, ge=1, le=MAX_LISTED)


class TrajectoryFilter(Request):
    run: Annotated[str | None, About("run", "A run's id.", absent="the one whose work was kept")] = None


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
RETRY = Operation(
    name="retry",
    role="operator",
    route="POST /orders/{order_id}/retry",
    names=NAMES,
    errors=(404, 409, 412),
    run="orders.retrying:retry",
    answer=OrderSummary,
    summary="Run an order again from its beginning",
    more="For an order that failed or was canceled: the same order, in a fresh workspace.",
    tool=Tool(
        "retry_order",
        "Run a work order again",
        SETS_WORK,
        "Run a work order that failed or was canceled again from its beginning, in a fresh workspace: the same order, "
        "with the same prompt and limits. Then get_order as after submit_order. To keep what its last run did, use "
        "resume_order. For operators.",
    ),
    command=ByHand("retry", "it can follow the order to its end"),
)
RESUME = Operation(
    name="resume",
    role="operator",
    route="POST /orders/{order_id}/resume",
    names=NAMES,
    errors=(404, 409, 412),
    run="orders.retrying:resume",
    request=ResumeRequest,
    answer=OrderSummary,
    summary="Let an order go on from its last checkpoint",
    more="For an order that failed or was canceled. Its limits count anew; those that are given are set with it.",
    tool=Tool(
        "resume_order",
        "Resume a work order",
        SETS_WORK,
        "Let a work order that failed or was canceled continue from its last complete step, with its conversation and "
        "its workspace as they were there: after a limit was reached, a provider was unavailable, or a cancel came too "
        "early. Its limits count anew; those that are given replace the ones it had. Where nothing of its last run can "
        "be had, it begins anew, and reason says so. Then get_order as after submit_order. For operators.",
        about={
            "max_iterations": "At most so many rounds of the model from here on; 0: no limit. Default: as before.",
            "cost_limit": "At most so many USD from here on; 0: no limit. Default: as before.",
            "max_run_seconds": "At most so many seconds of work from here on; 0: no limit. Default: as before.",
            "say": "What the agent hears first: a correction, a hint. Default: nothing.",
        },
    ),
    command=ByHand("resume", "it can follow the order to its end"),
)
STEPS = Operation(
    name="list_steps",
    role="viewer",
    route="GET /orders/{order_id}/steps",
    names=NAMES,
    errors=(404,),
    run="orders.reading:steps_after",
    request=StepFilter,
    answer=list[StepDocument],
    summary="Steps behind a number, in order",
    tool=NoDoor("get_order has the steps"),
    command=NoDoor("`fleet show` and `fleet follow` print the steps"),
)
PATCH = Operation(
    name="show_patch",
    role="viewer",
    route="GET /orders/{order_id}/patch",
    names=NAMES,
    errors=(404,),
    run="orders.reading:patch_of",
    answer=bytes,
    summary="The patch against the base commit",
    more="Empty if nothing changed, 404 while there is none yet.",
    tool=ByHand("get_patch", "a long patch comes in parts"),
    command=ByHand("patch", "it prints the bytes as they are"),
    route_by_hand="it answers with a file",
)
LOG = Operation(
    name="show_log",
    role="viewer",
    route="GET /orders/{order_id}/log/{seq}",
    names={**NAMES, "seq": Annotated[int, Field(ge=1, le=MAX_SEQ), About("step", "The number of the tool's result.")]},
    errors=(404,),
    run="orders.reading:log_of",
    answer=bytes,
    summary="The full output of a tool result",
    more="Up to 50 MB: head and tail of what was longer.",
    tool=NoDoor("get_order and get_run have outputs; a log of 50 MB does not fit into a conversation"),
    command=ByHand("show", "its --log prints the bytes as they are"),
    route_by_hand="it answers with a file",
)
TRAJECTORY = Operation(
    name="show_trajectory",
    role="viewer",
    route="GET /orders/{order_id}/trajectory",
    names=NAMES,
    errors=(404,),
    run="orders.trajectories:trajectory_of",
    request=TrajectoryFilter,
    answer=dict[str, Any],
    summary=f"A run as a document in {FORMAT}",
    more="What there is so far, while the run is at work; 404 before one has begun.",
    tool=NoDoor("it is a file for other programs; get_order has the steps"),
    command=ByHand("trajectory", "it writes a file"),
    route_by_hand="it answers with a file",
)
FOLLOW = Operation(
    name="follow_order",
    role="viewer",
    route="GET /orders/{order_id}/events",
    names=NAMES,
    errors=(404,),
    run="orders.reading:order_summary",
    answer=OrderSummary,
    summary="Follow an order live",
    tool=NoDoor("a tool answers once; get_order is called again until the order has ended"),
    command=ByHand("follow", "it prints each event as it comes"),
    route_by_hand="it is a stream of events",
)
