"""Requests and documents of work orders, their runs and steps."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from control_plane.documents.base import Document, Request
from shared.budgets import OnLimit
from shared.work_order import Approve, Mode


class SubmitRequest(Request):
    prompt: str
    project: str
    """Slug."""
    provider: str | None = None
    drone: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    session: str | None = None
    mode: Mode | None = None
    priority: int = Field(0, ge=-100, le=100)
    max_iterations: int | None = Field(None, ge=0)
    cost_limit: float | None = Field(None, ge=0)
    max_run_seconds: float | None = Field(None, ge=0)
    on_limit: OnLimit | None = None
    """What happens when its money is used up: stop, which keeps the work, or ask a person. None: stop."""
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


class ResumeRequest(Request):
    """Given limits replace the previous ones; all limits count from zero again."""

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


class DecideRequest(Request):
    call: str | None = Field(None, max_length=1000)
    """The id of the call; None: the call that has waited longest."""
    comment: str = ""
    """An explanation for the model and for later readers."""


class DenyRequest(DecideRequest):
    finish: bool = False
    """An order at its cost limit makes one more call, to write a summary, and ends."""


class ApproveRequest(DecideRequest):
    raise_usd: float | None = Field(None, gt=0, le=1e6, allow_inf_nan=False)
    """By how much an order at its cost limit may exceed it; None: by the same amount again."""
    always: bool = False
    """Allow the same command in later orders of the session."""


class StatsDocument(Document):
    tool_calls: int
    input_tokens: int
    thinking_tokens: int
    output_tokens: int
    cost_usd: float | None
    duration_ms: int
    duration_label: str


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
    """`approval`: may a call be run? `secret`: may work be delivered in which a secret was found?"""
    text: str
    choices: list[str]
    """Empty: any text is an answer."""
    default: str | None
    """The answer that is used after the deadline."""
    deadline: datetime | None
    call_id: str
    tool: str
    why: str
    command: str = ""
    """All of what would run: a shell line, or the call's arguments; empty for a drone that did not send it yet."""
    until: datetime | None
    """When it is denied automatically; null: never."""


class SteeringMessageDocument(Document):
    """A message from a person to an order."""

    text: str
    after: bool
    interrupt: bool
    user: str
    at: datetime


class OrderSummary(Document):
    """An order without its steps: a row of `fleet orders`."""

    id: str
    status: str
    reason: str
    exit_status: str | None
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
    priority: int
    labels: dict[str, str]
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    prompt: str
    response: str | None
    branch: str | None
    base_commit: str | None
    head_commit: str | None
    pushed: bool
    push_error: str | None
    late_refs: list[str]
    receipt: dict[str, Any] | None
    approve: str
    allow: list[str]
    verification: str | None
    """The result of the project's own commands; null until the order has ended."""
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

    todo: list[dict[str, Any]]
    """The latest state of the model's to-do list."""
    unheard: list[SteeringMessageDocument]
    """Messages that the run has not read yet."""
    patch: str | None
    """The text; '' if nothing changed, null over 1 MB or while there is none yet."""
    runs: list[RunDocument]
    steps: list[StepDocument]
