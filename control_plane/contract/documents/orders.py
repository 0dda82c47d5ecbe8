"""Requests and documents of work orders, their runs and steps."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import ConfigDict

from control_plane.contract.documents.base import Document
from control_plane.contract.documents.limits import EffectiveLimit
from control_plane.contract.documents.plans import PlanDocument
from shared.outcome import OrderOutcome
from shared.reasons import DroneScore


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
    ticket: str | None
    """What its change is for."""
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
