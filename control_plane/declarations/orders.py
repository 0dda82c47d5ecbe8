"""Work orders: one prompt each, for one project."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

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
ORDER_ID = About("order", "The order's id, a unique prefix of it, or @last (your newest order).", source="orders:id")
OutcomeFilter = Literal["done", "unchanged", "asks", "incomplete", "checks_failed", "failed", "canceled"]
OUTCOME = About("outcome", "Only ended orders that lists show as this; checks_failed: its checks failed.", absent="all")


class OrderFilter(Request):
    model_config = ConfigDict(populate_by_name=True)

    status: Annotated[OrderStatus | None, About("status", "Only orders with this status.", absent="all")] = None
    outcome: Annotated[OutcomeFilter | None, OUTCOME] = None
    project: Annotated[
        str | None, About("project", "Only orders of this project (slug).", source="projects:slug", absent="all")
    ] = None
    drone: Annotated[
        str | None, About("drone", "Only orders of this drone (name).", absent="all", source="drones:name")
    ] = None
    model: Annotated[
        str | None, About("model", "Only orders with this model.", absent="all", source="providers:model")
    ] = None
    agent: Annotated[str | None, About("agent", "Only turns of this agent.", absent="all", source="agents:name")] = None
    user: Annotated[
        str | None, About("user", "Only orders that this user submitted.", absent="all", source="users:email")
    ] = None
    text: Annotated[
        str | None, About("text", "Only orders whose prompt contains all of these words.", absent="all")
    ] = Field(None, min_length=1, max_length=200)
    since: Annotated[date | None, About("since", "Only orders of this day (UTC) and later.", absent="all")] = None
    until: Annotated[date | None, About("until", "Only orders of this day (UTC) and earlier.", absent="all")] = None
    before: Annotated[
        str | None, About("before", "Only orders submitted before this order; the last id of a list continues it.")
    ] = Field(None, max_length=64)
    every: Annotated[bool, About("all", "Include service orders of the control plane.", flag="--all")] = Field(
        False, alias="all"
    )
    mine: Annotated[bool, About("mine", "Only orders that you submitted.", flag="--mine")] = False
    limit: Annotated[int, About("limit", "Maximum number of results, newest first.")] = Field(100, ge=1, le=MAX_LISTED)


class StepFilter(Request):
    after: Annotated[int, About("after", "Only steps with a higher number.")] = Field(0, ge=0, le=MAX_SEQ)
    limit: Annotated[int, About("limit", "Maximum number of results, lowest step first.")] = Field(
        MAX_LISTED, ge=1, le=MAX_LISTED
    )


class TrajectoryFilter(Request):
    run: Annotated[str | None, About("run", "Id of the run.", absent="the run whose work was kept")] = None


class CancelRequest(Request):
    """The reason, which the order shows."""

    reason: Annotated[str, About("reason", "The reason, in one sentence; the order shows it.")] = Field(
        "", max_length=1000
    )


class MoveRequest(Request):
    """Where the order is to wait."""

    drone: Annotated[str | None, About("drone", "Name of the drone.", absent="any that fits", source="drones:name")] = (
        None
    )


class PriorityRequest(Request):
    priority: Annotated[int, About("priority", "-100 to 100; higher runs first.")] = Field(ge=-100, le=100)


FOR_MODELS = {
    "mode": "Tools and instructions of the agent: plan (read-only), build, test, ship, develop or one of list_modes. "
    "Default: the session's mode, else build.",
    "thinking": "How much the model thinks before it answers: off, minimal, low, medium, high or xhigh. Default: the "
    "session's setting, else the provider's.",
    "reviewer": "Name of the provider whose model reviews the change before it is delivered; its remarks go back to "
    "the agent once. none: no review. Default: the project's setting, else the organization's.",
    "profile": "Name of a profile, which sets what the other arguments do not; list_profiles has them. Default: none.",
    "keep_raw": "Keep the raw answers of the provider, for users who look for a fault. Default: only of answers that "
    "could not be acted on.",
    "priority": "-100 to 100; orders with a higher number start first. Default: 0.",
    "limits": 'Further limits by name, such as {"max_retries": 5}; list_limits has names, units, bounds and defaults. '
    "Default: those of session, agent, project and organization, in this order.",
    "max_iterations": "Maximum steps; 0 = unlimited. Default: 50.",
    "cost_limit": "Maximum cost in USD; 0 = unlimited. Default: 3.00.",
    "on_limit": "At a limit of cost, steps or time: stop, which keeps the work, or ask a user. Default: stop.",
    "plan_first": "true: the agent presents a plan, and changes nothing before a user approves it. Default: false.",
    "max_run_seconds": "Maximum working time in seconds; 0 = unlimited. Default: 1800.",
    "prompt": "Complete description of the work, in plain language: the agent sees only this text, the repository "
    "and, in a session, its earlier conversation.",
    "project": "Slug of the project to work on; list_projects has them.",
    "provider": "Name of the provider whose model is used; list_providers has them. Default: the project's "
    "provider, else the organization's only one.",
    "drone": "Name of the drone to use; list_drones has them. Default: any suitable drone.",
    "labels": 'Labels that the drone must have, such as {"gpu": "yes"}. Default: none.',
    "session": "Id of the session to continue: the agent keeps its conversation and starts from its last commit. "
    "Default: a new session.",
    "after": "Ids of orders that must succeed before this one starts. It starts from the work of the first, with "
    "that of the others merged in. Default: none.",
    "base": "Full id of the commit to start from. Default: the tip of the project's branch.",
    "verify": "Shell commands that must pass at the end, instead of the project's; [] = none. Default: the project's.",
    "verify_attempts": "How many times the agent may fix failures of the verify commands. Default: 2.",
    "approval_timeout": "Seconds after which a call without an approval decision is denied; 0 = never. Default: "
    "86400 (24 h).",
    "progress_timeout": "Seconds without progress after which a run is stopped; 0 = never. Default: 900.",
    "max_attempts": "Number of lost runs (drone gone, machine off) after which the order fails. Default: 3.",
    "approve": "Calls that require approval: yolo (none), risky or all. Default: the session's setting, else yolo.",
    "allow": "Shell patterns of commands that need no approval, such as `npm test*`. Default: none.",
}
"""Descriptions of the fields of a request, as MCP clients read them."""

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
    more="201 means that the order is stored durably: it will run, or `reason` says what it is waiting for.",
    tool=ByHand("submit_order", "its answer is shortened for a model"),
    command=ByHand("submit", "it can read the prompt from stdin, and follow the order"),
)
LIST = Operation(
    name="list_orders",
    role="viewer",
    route="GET /orders",
    run="orders.reading:list_orders",
    request=OrderFilter,
    answer=list[OrderSummary],
    summary="List orders, newest first",
    tool=Tool(
        "list_orders",
        "List work orders",
        READS,
        "List the work orders of the organization, newest first, without their steps: status, reason (what it is "
        "waiting for or how it ended), response, branch, cost. Turns of agents on tasks are orders too; agent and task "
        "name them. get_order shows one in full.",
        about={
            "status": "Only orders with this status. Default: all.",
            "outcome": "Only ended orders with this outcome; checks_failed: its checks failed. Default: all.",
            "project": "Only orders of this project (slug). Default: all.",
            "drone": "Only orders of this drone (name). Default: all.",
            "before": "Only orders submitted before this one. To continue a list, give the id of its last order.",
        },
        defaults={"limit": 20},
    ),
    command=ByHand("orders", "it shows relative times, and cuts prompts to the width of the terminal"),
)
SHOW = Operation(
    name="show_order",
    role="viewer",
    route="GET /orders/{order_id}",
    names=NAMES,
    errors=(404,),
    run="orders.reading:show_order",
    answer=OrderDocument,
    summary="Show an order with its runs and steps",
    tool=ByHand("get_order", "its answer is shortened for a model, unless `full` is set"),
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
    more="Returns once the request is recorded; a running order is `canceled` when its drone's receipt arrives.",
    tool=Tool(
        "cancel_order",
        "Cancel a work order",
        ENDS,
        "Stop a work order that has not ended. Returns once the request is recorded: a running order is canceling "
        "until its drone has stopped every process, then canceled. Its changes so far are kept; retry_order runs it "
        "again from the beginning, resume_order continues it. Requires the operator role.",
    ),
    command=ByHand("cancel", "it can wait for the receipt"),
)
MOVE = Operation(
    name="move_order",
    role="operator",
    route="POST /orders/{order_id}/move",
    names=NAMES,
    errors=(404, 409),
    run="orders.queueing:move",
    request=MoveRequest,
    answer=OrderSummary,
    summary="Move a waiting order to another drone",
    more="Without a drone, to any that fits. 409 if it has started.",
    tool=Tool(
        "move_order",
        "Move a work order",
        SETS_WORK,
        "Let a work order that has not started run on another drone: the named one, or without a name any that fits. "
        "list_drones has the names and says which drones have a free slot. Requires the operator role.",
        about={"drone": "The drone's name. Default: any that fits."},
    ),
    command=ByHand("move", "it is a command of the top level, whose help loads no declaration"),
)
SET_PRIORITY = Operation(
    name="set_priority",
    role="operator",
    route="POST /orders/{order_id}/priority",
    names=NAMES,
    errors=(404, 409),
    run="orders.queueing:set_priority",
    request=PriorityRequest,
    answer=OrderSummary,
    summary="Change an order's priority",
    more="Orders that wait for the same drone are sorted again. 409 if it has ended.",
    tool=Tool(
        "set_order_priority",
        "Change a work order's priority",
        SETS_WORK,
        "Change the priority of a work order that has not ended, so that it starts before or after the other waiting "
        "orders. Requires the operator role.",
        about={"priority": "-100 to 100; orders with a higher number start first."},
    ),
    command=ByHand("prioritize", "it is a command of the top level, whose help loads no declaration"),
)
RETRY = Operation(
    name="retry",
    role="operator",
    route="POST /orders/{order_id}/retry",
    names=NAMES,
    errors=(404, 409, 412),
    run="orders.retrying:retry",
    answer=OrderSummary,
    summary="Run a failed or canceled order again from the beginning",
    more="The same order, in a fresh workspace.",
    tool=Tool(
        "retry_order",
        "Run a work order again",
        SETS_WORK,
        "Run a failed or canceled work order again from the beginning, in a fresh workspace: the same order, with the "
        "same prompt and limits. Then poll get_order as after submit_order. To keep the work of its last run, call "
        "resume_order instead. Requires the operator role.",
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
    summary="Resume a failed or canceled order from its last checkpoint",
    more="Its limits count from zero again; given limits replace the previous ones.",
    tool=Tool(
        "resume_order",
        "Resume a work order",
        SETS_WORK,
        "Resume a failed or canceled work order from its last complete step, with its conversation and workspace as of "
        "that step: for example if it reached a limit, its provider was unavailable, or it was canceled too early. Its "
        "limits count from zero again; given limits replace the previous ones. If the work of its last run is no "
        "longer available, it starts from the beginning, and reason says so. Then poll get_order as after "
        "submit_order. Requires the operator role.",
        about={
            "max_iterations": "Maximum steps from now on; 0 = unlimited. Default: the previous limit.",
            "cost_limit": "Maximum cost from now on in USD; 0 = unlimited. Default: the previous limit.",
            "max_run_seconds": "Maximum working time from now on in seconds; 0 = unlimited. Default: the previous "
            "limit.",
            "limits": "Further limits from now on, by name; list_limits has them. Default: the previous ones.",
            "say": "First message to the agent, such as a correction or a hint. Default: none.",
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
    summary="List the steps after a given step, in order",
    tool=NoDoor("get_order returns the steps"),
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
    summary="Download the patch against the base commit",
    more="Empty if nothing changed; 404 if there is no patch yet.",
    tool=ByHand("get_patch", "it returns a long patch in parts"),
    command=ByHand("patch", "it prints the bytes unchanged"),
    route_by_hand="it returns a file",
)
LOG = Operation(
    name="show_log",
    role="viewer",
    route="GET /orders/{order_id}/log/{seq}",
    names={**NAMES, "seq": Annotated[int, Field(ge=1, le=MAX_SEQ), About("step", "Number of the tool result's step.")]},
    errors=(404,),
    run="orders.reading:log_of",
    answer=bytes,
    summary="Download the full output of a tool result",
    more="Up to 50 MB; of longer output, the beginning and the end.",
    tool=NoDoor("get_order and get_run return outputs; a 50 MB log does not fit into a conversation"),
    command=ByHand("show", "its --log prints the bytes unchanged"),
    route_by_hand="it returns a file",
)
RAW = Operation(
    name="show_raw_answer",
    role="viewer",
    route="GET /orders/{order_id}/raw/{seq}",
    names={**NAMES, "seq": Annotated[int, Field(ge=1, le=MAX_SEQ), About("step", "Number of the model's step.")]},
    errors=(404,),
    run="orders.reading:raw_of",
    answer=bytes,
    summary="Download the provider's raw answer",
    more="JSON Lines, as the provider streamed them, without known secrets. Kept for orders with `keep_raw`, and for "
    "every answer that could not be acted on.",
    tool=NoDoor("it is for people who look for the fault of an endpoint; get_order returns the answers as read"),
    command=ByHand("show", "its --raw prints the bytes unchanged"),
    route_by_hand="it returns a file",
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
    summary=f"Download a run as a document in {FORMAT}",
    more="Contains the steps so far while the run is active; 404 before a run has started.",
    tool=NoDoor("it is a file for other programs; get_order returns the steps"),
    command=ByHand("trajectory", "it writes a file"),
    route_by_hand="it returns a file",
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
    tool=NoDoor("a tool answers only once; get_order can be polled until the order has ended"),
    command=ByHand("follow", "it prints each event as it arrives"),
    route_by_hand="it is a stream of events",
)
