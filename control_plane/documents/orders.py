"""Requests and documents of work orders, their runs and steps."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from control_plane.documents.base import Document, ModeName, Request
from control_plane.documents.limits import EffectiveLimit, LimitsGiven
from control_plane.documents.plans import PlanDocument
from shared.budgets import OnLimit
from shared.outcome import OrderOutcome
from shared.reasons import DroneScore
from shared.work_order import Approve, ThinkingLevel


class OrderRequest(Request):
    """What every order is submitted with."""

    prompt: str
    provider: str | None = None
    drone: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    session: str | None = None
    after: list[str] = Field(default_factory=list, max_length=20)
    """Orders that must succeed before it starts; it builds on their work."""
    base: str | None = None
    """The full id of the commit to start from. None: the tip of the project's branch."""
    mode: ModeName | None = None
    thinking: ThinkingLevel | None = None
    """How much the model thinks; None: the session's setting, else the provider's."""
    profile: str | None = None
    """The name of a profile, which fills what the request does not set."""
    reviewer: str | None = None
    """The provider, or its model, that reviews the change before it is delivered; none: no review. None: as set for
    the project or the organization."""
    keep_raw: bool = False
    """Keep the raw answers of the provider; one that cannot be acted on is always kept."""
    priority: int = Field(0, ge=-100, le=100)
    limits: Annotated[dict[str, Any], LimitsGiven] = Field(default_factory=dict)
    """By name (`shared.limits`), besides those below; what is not given: as session, agent, project or organization
    say."""
    max_iterations: int | None = Field(None, ge=0)
    cost_limit: float | None = Field(None, ge=0)
    max_run_seconds: float | None = Field(None, ge=0)
    on_limit: OnLimit | None = None
    """What happens at a limit of cost, steps or time: stop, which keeps the work, or ask a person. None: stop."""
    plan_first: bool = False
    """The agent presents a plan, which a person edits, approves or sends back before anything is changed."""
    verify: list[str] | None = None
    """Commands that must pass at the end, instead of the project's; empty: none. None: the project's."""
    verify_attempts: int | None = Field(None, ge=0, le=1000)
    approval_timeout: float | None = Field(None, ge=0)
    """Seconds; 0: a call waits for a decision without limit."""
    progress_timeout: float | None = Field(None, ge=0)
    """Seconds without progress after which a run is stopped; 0: never."""
    max_attempts: int | None = Field(None, ge=1, le=100)
    """Number of lost runs after which the order fails; None: 3."""
    approve: Approve | None = None
    """None: the session's setting, else yolo."""
    allow: list[str] = Field(default_factory=list)
    """Commands that need no approval, as shell patterns, in addition to those of the session."""


class SubmitRequest(OrderRequest):
    project: str
    """Slug."""


class ResumeRequest(Request):
    """Given limits replace the previous ones; all limits count from zero again."""

    limits: Annotated[dict[str, Any], LimitsGiven] = Field(default_factory=dict)
    """By name, besides those below."""
    max_iterations: int | None = Field(None, ge=0)
    cost_limit: float | None = Field(None, ge=0)
    max_run_seconds: float | None = Field(None, ge=0)
    say: str | None = None
    """The first message that its run receives."""


class SayRequest(Request):
    text: str
    after: bool = False
    """Wait until the model stops."""
    interrupt: bool = False
    """Abort what is running now."""
    alone: bool = False
    """The model answers it before it reads the next message."""


class AnswerRequest(Request):
    text: str
    """Any text, one of the question's choices, or the number of a choice."""
    call: str | None = Field(None, max_length=1000)
    """The id of the call that asks; None: the question that has waited longest."""
    digest: str | None = Field(None, max_length=64)
    """The `waiting_for.digest` that was read: refused if something else waits by now. None: not checked."""


class DecideRequest(Request):
    call: str | None = Field(None, max_length=1000)
    """The id of the call; None: the call that has waited longest."""
    digest: str | None = Field(None, max_length=64)
    """The `waiting_for.digest` that was read: refused if something else waits by now. None: not checked."""
    comment: str = ""
    """An explanation for the model and for later readers."""


class DenyRequest(DecideRequest):
    finish: bool = False
    """An order at its cost limit makes one more call, to write a summary, and ends."""


class ApproveRequest(DecideRequest):
    raise_usd: float | None = Field(None, gt=0, le=1e6, allow_inf_nan=False)
    """By how much an order at its cost limit may exceed it; None: by the same amount again."""
    raise_steps: int | None = Field(None, ge=1, le=1_000_000)
    """The same for an order at its limit of steps."""
    raise_seconds: float | None = Field(None, gt=0, le=1e8, allow_inf_nan=False)
    """The same for an order at its time limit."""
    always: bool = False
    """Allow the same command in later orders of the session."""


class StatsDocument(Document):
    tool_calls: int
    input_tokens: int
    thinking_tokens: int
    output_tokens: int
    cached_tokens: int
    """How many of the input tokens the provider read from its cache."""
    cost_usd: float | None
    duration_ms: int
    """Working time. Waiting for a user does not count."""
    duration_label: str
    working_since: datetime | None = None
    """While it works: a clock that began then shows the working time."""
    waiting_ms: int = 0
    """Time spent waiting for users."""
    waiting_label: str = ""


class PlacementDocument(Document):
    """How the drone of a run was chosen."""

    because: str
    """In words."""
    scores: tuple[DroneScore, ...]
    """The best eight, the chosen drone first; empty where there was no choice."""
    scored: int
    """How many drones were scored."""


class RunDocument(Document):
    id: str
    attempt: int
    drone: str | None
    status: str
    exit_status: str | None
    reason: str
    started_at: datetime
    ended_at: datetime | None
    cost_usd: float | None
    doing: str
    doing_since: datetime | None
    progress_at: datetime | None
    """When it last made progress: an event, text, output."""
    waits_for: str
    """`person` or `provider` if it is quiet for that reason; else empty."""
    late: bool
    resumed_from: str | None
    """The run from whose checkpoint this one resumed."""
    placement: PlacementDocument | None
    """How its drone was chosen."""
    flower: str | None
    """Its page in Flower, where its id is that of a task; null for a caller who may not use Flower."""


class StepDocument(Document):
    """`seq`, `kind`, `run` and `at`, and the fields of the step's kind (`shared.events`).

    `undone` is true if a later run continued from before this step: it is kept, but is not part of the conversation.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    seq: int
    kind: str
    run: str
    at: datetime
    undone: bool = False


class WaitingDocument(Document):
    """A pending request to a person."""

    kind: str
    """`approval`: may a call be run? `secret`: may work be delivered in which a secret was found? `branch`: may the
    order continue from a branch that was rewritten? `limit`: may the order exceed its cost limit? `budget`: has its
    budget been raised? `question`: the agent asks its user. `plan`: may the agent carry out its plan?
    """
    text: str
    choices: list[str]
    """Of a question: suggestions, and any other text is an answer, too. Of the other kinds: approve and deny."""
    default: str | None
    """The answer that counts after the deadline; null: the question then has no answer."""
    deadline: datetime | None
    """Null: it waits without limit."""
    call_id: str
    tool: str
    why: str
    """Of a question: its text."""
    command: str = ""
    """All of what would run: a shell line, or the call's arguments; empty for a drone that did not send it yet."""
    until: datetime | None
    """When it is denied automatically; null: never."""
    limit: str = ""
    """Of a limit: `cost`, `steps` or `time`."""
    plan: PlanDocument | None = None
    """Of a plan: all of it, as edited so far."""
    digest: str
    """Of all that is asked. Sent with a decision, it makes sure that the decision is about this."""


class SteeringMessageDocument(Document):
    """A message from a person to an order."""

    id: str
    text: str
    after: bool
    interrupt: bool
    alone: bool
    state: str
    """queued; taking_back: its run has yet to say whether the model has read it; taken_back."""
    user: str
    at: datetime


class OrderSummary(Document):
    """An order without its steps: a row of `fleet orders`."""

    id: str
    status: str
    reason: str
    exit_status: str | None
    outcome: OrderOutcome | None
    """What came of it, once it has ended: a limit, or work that was not delivered, makes it incomplete."""
    attempt: int
    max_attempts: int
    """The number of lost runs after which the order fails."""
    generation: int
    organization: str
    user: str
    drone: str | None
    project: str | None
    session: str
    provider: str
    model: str
    mode: str
    thinking: str | None
    """How much the model was asked to think; null: its default."""
    profile: str | None
    """The profile that filled what its request did not set."""
    reviewer: str | None
    """The provider whose model reviews the change before it is delivered; null: it is not reviewed."""
    priority: int
    labels: dict[str, str]
    after: list[str]
    """Ids of the orders that must succeed before it starts."""
    merge_only: bool
    """Its model is asked only about conflicts with the work of those orders, and about checks that fail then."""
    graph: str | None
    """The id of the graph that it belongs to."""
    race: str | None
    """The id of the race that it belongs to."""
    batch: str | None
    """The id of the batch that it belongs to."""
    key: str | None
    """Its name in the graph or race, or the id of its row in the batch, at most 64 characters of it."""
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    title: str
    """The first line of the prompt, shortened."""
    session_title: str
    """What its session is called, shortened: its name, the title from a model, or its first prompt's first line."""
    prompt: str
    response: str | None
    asks: bool
    """It succeeded without changes, and its response closes with a question: answer with an order in its session."""
    branch: str | None
    base_commit: str | None
    head_commit: str | None
    files_changed: int | None
    lines_added: int | None
    """Lines of its patch in text files; null until it is delivered, and from a drone that does not count them."""
    lines_removed: int | None
    pushed: bool
    push_error: str | None
    left_out: list[str]
    """What of its work could not be delivered: paths, each with the reason."""
    late_refs: list[str]
    receipt: dict[str, Any] | None
    approve: str
    allow: list[str]
    verify: list[str] | None
    """Its own commands that verify the work; null: the project's."""
    verification: str | None
    """The result of these commands; null until the order has ended."""
    waiting_for: WaitingDocument | None
    agent: str | None
    """The agent whose turn on `task` it is."""
    task: str | None
    purpose: str
    """work, or a small service for the fleet: describe, pull_request."""
    pull_request: dict[str, Any] | None
    """`declarations.pull_requests.PullRequestDocument`, if one was requested."""
    doing: str = ""
    """What its run is doing and for how long; after two minutes of silence, that there is no progress; else empty."""
    stalled: bool = False
    """Its run has made no progress for two minutes, although it waits for nothing."""
    stats: StatsDocument


class OrderDocument(OrderSummary):
    """An order in full (`fleet show --json`)."""

    limits: dict[str, EffectiveLimit]
    """Each limit with its value and where it is set."""
    todo: list[dict[str, Any]]
    """The latest state of the model's to-do list."""
    unheard: list[SteeringMessageDocument]
    """Messages that the run has not read yet."""
    unsettled: int
    """Review comments on this order, or sent to it, that have no answer so far."""
    plan: PlanDocument | None
    """Null for an order that needs none."""
    removed: str | None
    """What of it is no longer stored, in one sentence; null: all of it is."""
    patch: str | None
    """The text; '' if nothing changed, null over 1 MB or while there is none yet."""
    runs: list[RunDocument]
    steps: list[StepDocument]
