"""Work orders: one prompt each, for one project."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from control_plane.contract.declarations.operation import (
    ENDS,
    READS,
    SETS_WORK,
    TOP_LEVEL,
    About,
    ByHand,
    NoDoor,
    Operation,
    Tool,
)
from control_plane.contract.documents.base import ModeName, Request
from control_plane.contract.documents.limits import LimitsGiven
from control_plane.contract.documents.orders import (
    OrderDocument,
    OrderSummary,
    StepDocument,
)
from shared.budgets import OnLimit
from shared.states import OrderStatus
from shared.trajectories import FORMAT
from shared.work_order import Approve, ThinkingLevel

MAX_LISTED = 1000
MAX_SEQ = 2**53
MAX_TICKET = 200
ONE_WORD = "^[!-~]+$"
"""Printable ASCII without blanks: it becomes a line of commits, which nothing in it may end or hide."""
ORDER_ID = About(
    "order",
    "The order's id, a unique prefix of it, or @last (your newest order).",
    source="orders:id|@last",
    metavar="ORDER",
)
OutcomeFilter = Literal["done", "unchanged", "asks", "incomplete", "checks_failed", "failed", "canceled"]
OUTCOME = About("outcome", "Only ended orders that lists show as this; checks_failed: its checks failed.", absent="all")


class OrderRequest(Request):
    """What every order is submitted with."""

    prompt: Annotated[str, About("task", "The task in your words; the agent reads it as it is.", input="stdin")]
    provider: Annotated[
        str | None, About("model", "Model provider to use.", absent="the project's", source="providers:name")
    ] = None
    drone: Annotated[
        str | None, About("drone", "Run only on this drone.", absent="any that fits", source="drones:name")
    ] = None
    labels: Annotated[
        dict[str, str],
        About("drone labels", "Label k=v that its drone must have.", absent="any drone", flag="--label", metavar="K=V"),
    ] = Field(default_factory=dict)
    session: Annotated[
        str | None, About("session", "Continue this session.", absent="a new one", source="sessions:id")
    ] = None
    after: Annotated[
        list[str],
        About(
            "after orders",
            "Start when this order has succeeded, from its work.",
            absent="at once",
            source="orders:id",
            metavar="ORDER",
        ),
    ] = Field(default_factory=list, max_length=20)
    base: Annotated[
        str | None,
        About("base commit", "Full id of the commit to start from.", absent="the tip of the branch", metavar="COMMIT"),
    ] = None
    mode: Annotated[
        ModeName | None,
        About(
            "mode",
            "plan (read-only), build, test, ship, develop or one of your own.",
            absent="the session's, else build",
            source="modes:name",
        ),
    ] = None
    thinking: Annotated[
        ThinkingLevel | None,
        About("thinking", "How much the model thinks.", absent="the session's, else the provider's"),
    ] = None
    profile: Annotated[
        str | None, About("profile", "Profile, which sets what is not set here.", absent="none", source="profiles:name")
    ] = None
    reviewer: Annotated[
        str | None,
        About(
            "reviewer",
            "Provider, or its model, that reviews the change before it is delivered; none: no review.",
            absent="the project's",
            source="providers:name",
            metavar="MODEL",
        ),
    ] = None
    ticket: Annotated[
        str | None,
        About(
            "ticket",
            "Ticket that the change is for, such as PAYM-12 or its URL: commits and the pull request name it.",
            absent="none",
            metavar="ID|URL",
        ),
    ] = Field(None, max_length=MAX_TICKET, pattern=ONE_WORD)
    keep_raw: Annotated[
        bool, About("keep raw answers", "Keep the provider's raw answers, also those that could be acted on.")
    ] = False
    priority: Annotated[int, About("priority", "-100 to 100; higher starts first.")] = Field(0, ge=-100, le=100)
    limits: Annotated[
        dict[str, Any],
        LimitsGiven,
        About(
            "other limits",
            "Any limit, such as max_retries=5; `fleet limit ls` lists all.",
            absent="as set for session, agent, project or organization",
            flag="--limit",
            metavar="NAME=VALUE",
        ),
    ] = Field(default_factory=dict)
    max_iterations: Annotated[int | None, About("step limit", "Maximum steps; 0 = unlimited.", absent="50")] = Field(
        None, ge=0
    )
    cost_limit: Annotated[
        float | None, About("cost limit", "Maximum cost in USD; 0 = unlimited.", unit="USD", absent="3")
    ] = Field(None, ge=0)
    max_run_seconds: Annotated[
        float | None, About("time limit", "Maximum working time in seconds; 0 = unlimited.", absent="1800")
    ] = Field(None, ge=0)
    on_limit: Annotated[
        OnLimit | None,
        About("at a limit", "At a limit of cost, steps or time: stop and keep the work, or ask a user.", absent="stop"),
    ] = None
    plan_first: Annotated[bool, About("plan first", "Change nothing before a user has approved the agent's plan.")] = (
        False
    )
    verify: Annotated[
        list[str] | None,
        About(
            "checks",
            "Command that must pass at the end, instead of the project's.",
            absent="the project's",
            metavar="COMMAND",
        ),
    ] = None
    verify_attempts: Annotated[
        int | None, About("repair attempts", "How often the agent may fix failed checks.", absent="2")
    ] = Field(None, ge=0, le=1000)
    approval_timeout: Annotated[
        float | None,
        About(
            "deny after",
            "Seconds without a decision after which a call is denied; 0 = never.",
            absent="86400, a day",
            input="duration",
        ),
    ] = Field(None, ge=0)
    progress_timeout: Annotated[
        float | None,
        About(
            "progress timeout",
            "Seconds without progress after which a run is ended; 0 = never.",
            absent="900",
            input="duration",
        ),
    ] = Field(None, ge=0)
    max_attempts: Annotated[int | None, About("attempts", "Maximum attempts if runs are lost.", absent="3")] = Field(
        None, ge=1, le=100
    )
    approve: Annotated[
        Approve | None,
        About(
            "approvals", "Calls that require approval: yolo (none), risky or all.", absent="the session's, else yolo"
        ),
    ] = None
    allow: Annotated[
        list[str],
        About(
            "allowed commands",
            "Shell pattern of commands that need no approval, in addition to the session's.",
            absent="none",
            metavar="PATTERN",
        ),
    ] = Field(default_factory=list)


class SubmitRequest(OrderRequest):
    project: Annotated[str, About("project", "Short name of the project to work on.", source="projects:slug")]


_AS_BEFORE = "as before"


class ResumeRequest(Request):
    """Given limits replace the previous ones; all limits count from zero again."""

    limits: Annotated[
        dict[str, Any],
        LimitsGiven,
        About(
            "other limits",
            "Any limit from now on; `fleet limit ls` lists all.",
            absent=_AS_BEFORE,
            flag="--limit",
            metavar="NAME=VALUE",
        ),
    ] = Field(default_factory=dict)
    max_iterations: Annotated[
        int | None, About("step limit", "Maximum steps from now on; 0 = unlimited.", absent=_AS_BEFORE)
    ] = Field(None, ge=0)
    cost_limit: Annotated[
        float | None,
        About("cost limit", "Maximum cost in USD from now on; 0 = unlimited.", unit="USD", absent=_AS_BEFORE),
    ] = Field(None, ge=0)
    max_run_seconds: Annotated[
        float | None,
        About("time limit", "Maximum working time in seconds from now on; 0 = unlimited.", absent=_AS_BEFORE),
    ] = Field(None, ge=0)
    say: Annotated[
        str | None, About("message", "Message that the model reads first.", absent="none", metavar="TEXT")
    ] = None


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
    "prompt": "Complete description of the work, in plain language: the agent sees only this text, the repository "
    "and, in a session, its earlier conversation.",
    "provider": "Name of the provider whose model is used; list_providers has them. Default: the project's "
    "provider, else the organization's only one.",
    "labels": 'Labels that the drone must have, such as {"gpu": "yes"}. Default: none.',
    "limits": 'Further limits by name, such as {"max_retries": 5}; list_limits has names, units, bounds and defaults. '
    "Default: those of session, agent, project and organization, in this order.",
    "after": "Ids of orders that must succeed before this one starts. It starts from the work of the first, with "
    "that of the others merged in. Default: none.",
    "allow": "Shell patterns of commands that need no approval, such as `npm test*`. Default: none.",
}
"""Where MCP clients read more than people do."""

NAMES = {"order_id": Annotated[str, Field(max_length=64), ORDER_ID]}

SUBMIT = Operation(
    name="submit",
    role="operator",
    route="POST /orders",
    status=201,
    errors=(404, 409, 412, 413),
    idempotent=True,
    request=SubmitRequest,
    answer=OrderDocument,
    summary="Submit an order",
    more="201 means that the order is stored durably: it will run, or `reason` says what it is waiting for.",
    tool=ByHand("submit_order", "its answer is shortened for a model"),
    command=ByHand("submit", "it can follow the order, and submit it as a race"),
)
LIST = Operation(
    name="list_orders",
    role="viewer",
    route="GET /orders",
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
    ),
    command=ByHand("move", TOP_LEVEL),
)
SET_PRIORITY = Operation(
    name="set_priority",
    role="operator",
    route="POST /orders/{order_id}/priority",
    names=NAMES,
    errors=(404, 409),
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
    ),
    command=ByHand("prioritize", TOP_LEVEL),
)
RETRY = Operation(
    name="retry",
    role="operator",
    route="POST /orders/{order_id}/retry",
    names=NAMES,
    errors=(404, 409, 412),
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
            "limits": "Further limits from now on, by name; list_limits has them. Default: the previous ones.",
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
    request=TrajectoryFilter,
    answer=dict[str, Any],
    summary=f"Download a run as a document in {FORMAT}",
    more="Contains the steps so far while the run is active; 404 before a run has started.",
    tool=NoDoor("it is a file for other programs; get_order returns the steps"),
    command=ByHand("trajectory", "it writes a file"),
    route_by_hand="it returns a file",
)
EXPORT = Operation(
    name="export_order",
    role="viewer",
    route="GET /orders/{order_id}/export",
    names=NAMES,
    errors=(404,),
    answer=bytes,
    summary="Download an order as a page that needs no server",
    more="One HTML file that loads nothing: prompt, result, changes and conversation. While the order is active, it "
    "contains what there is so far.",
    tool=NoDoor("it is a page for people; get_order returns what is in it"),
    command=ByHand("export", "it writes a file"),
    route_by_hand="it returns a file",
)
FOLLOW = Operation(
    name="follow_order",
    role="viewer",
    route="GET /orders/{order_id}/events",
    names=NAMES,
    errors=(404,),
    answer=OrderSummary,
    summary="Follow an order live",
    tool=NoDoor("a tool answers only once; get_order can be polled until the order has ended"),
    command=ByHand("follow", "it prints each event as it arrives"),
    route_by_hand="it is a stream of events",
)
