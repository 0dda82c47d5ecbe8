"""The documents of teams: organizations, agents, tasks, comments, and what makes tasks by itself.

The same in the terminal, over HTTP and in MCP, like those of `control_plane.documents`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from control_plane.documents import Document, Request
from shared.work_order import Mode

USER = "user"
"""The name of people in tags, as assignee and as author."""
SYSTEM = "system"
MAX_TITLE = 500
MAX_COMMENT = 100_000
"""Characters. What is longer belongs into a file of the repository (S-072)."""
MAX_INSTRUCTIONS = 100_000

# --- requests --------------------------------------------------------------------------


class OrganizationRequest(Request):
    name: str
    description: str = ""
    project: str | None = None
    """Slug of the project where tasks work that name none; it must be there already, so at first none is."""
    concurrency: int = Field(4, ge=0, le=1000)
    max_hand_offs: int = Field(20, ge=0, le=10_000)


class OrganizationEdit(Request):
    """Only the fields that are set change; the name never does (S-005)."""

    description: str | None = None
    project: str | None = None
    concurrency: int | None = Field(None, ge=0, le=1000)
    max_hand_offs: int | None = Field(None, ge=0, le=10_000)


class AgentRequest(Request):
    name: str
    instructions: str | None = None
    """Markdown; or else `instructions_path`."""
    instructions_path: str | None = None
    """A file in the project's repository."""
    project: str | None = None
    """Slug; None: that of the task."""
    boss: str | None = None
    max_iterations: int = Field(50, ge=0, le=100_000)
    cost_limit: float | None = Field(None, ge=0)
    provider: str | None = None
    model: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    concurrency: int = Field(0, ge=0, le=1000)


class AgentEdit(Request):
    """Only the fields that are set change; null takes boss, project, provider, model and cost_limit away (S-015)."""

    instructions: str | None = None
    instructions_path: str | None = None
    project: str | None = None
    boss: str | None = None
    max_iterations: int | None = Field(None, ge=0, le=100_000)
    cost_limit: float | None = Field(None, ge=0)
    provider: str | None = None
    model: str | None = None
    labels: dict[str, str] | None = None
    concurrency: int | None = Field(None, ge=0, le=1000)


class TaskRequest(Request):
    title: str
    description: str | None = None
    """None: the title (S-020)."""
    project: str | None = None
    """Slug; None: the organization's, else its only one."""
    assignee: str | None = None
    """An agent or `user`; None: the first agent without a boss (S-022)."""
    mode: Mode = "build"
    priority: int = Field(0, ge=-100, le=100)
    max_iterations: int | None = Field(None, ge=0)
    cost_limit: float | None = Field(None, ge=0)
    max_run_seconds: float | None = Field(None, ge=0)


class CommentRequest(Request):
    text: str


class AssignRequest(Request):
    assignee: str
    """An agent or `user`."""


class TaskRetryRequest(Request):
    assignee: str | None = None
    """None: the agent of the latest run (S-113)."""


class TaskCancelRequest(Request):
    reason: str = ""


# --- answers ------------------------------------------------------------------------------


class Totals(Document):
    """Sums over runs, made when they are asked for (S-034)."""

    runs: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """What is known; null where no run's price was known."""
    unknown_costs: int
    """Runs whose price is not known."""
    duration_ms: int


class AgentNode(Document):
    """One agent in the tree of an organization."""

    name: str
    description: str
    reports: list[AgentNode]


class OrganizationDocument(Document):
    id: str
    name: str
    description: str
    acronym: str
    project: str | None
    concurrency: int
    max_hand_offs: int
    paused: bool
    paused_at: datetime | None
    agent_count: int
    tasks: dict[str, int]
    """How many are in each state."""
    totals: Totals
    created_at: datetime
    agents: list[AgentNode] | None = None
    """The tree; null in lists."""
    warnings: list[str] = Field(default_factory=list)


class AgentDocument(Document):
    id: str
    name: str
    organization: str
    description: str
    instructions_path: str | None
    instructions: str | None
    """What was uploaded; null in lists, and where they lie in the repository."""
    project: str | None
    boss: str | None
    reports: list[str]
    max_iterations: int
    cost_limit: float | None
    provider: str | None
    model: str | None
    labels: dict[str, str]
    concurrency: int
    is_removed: bool
    created_at: datetime
    removed_at: datetime | None
    totals: Totals | None
    """Null in lists."""
    warnings: list[str] = Field(default_factory=list)
    """What else changed with it, one sentence each (S-014)."""


class CommentDocument(Document):
    id: str
    author: str
    user: str
    """Who `user` was."""
    kind: str
    text: str
    run: str | None
    at: datetime
    note: str = ""
    """What follows from it, in the answer to whoever wrote it."""


class TaskRunDocument(Document):
    """One run of an agent on a task (S-026)."""

    run_id: str
    order: str
    task: str | None
    agent: str | None
    status: str
    exit_status: str | None
    reason: str
    """One sentence for people; the whole text is in the run's steps (S-084)."""
    drone: str | None
    model: str
    attempt: int
    duration_seconds: float | None
    input_tokens: int
    output_tokens: int
    tool_calls: int
    cost_usd: float | None
    started_at: datetime
    ended_at: datetime | None
    doing: str = ""
    branch: str | None = None
    head_commit: str | None = None


class TaskRunDetail(TaskRunDocument):
    steps: list[dict[str, Any]]
    """Numbered from 1, in order; outputs as the model was shown them."""


class TimelineEntry(Document):
    """A comment or a run, in order of time (S-026)."""

    kind: Literal["comment", "run"]
    at: datetime
    comment: CommentDocument | None = None
    run: TaskRunDocument | None = None


class TaskSummary(Document):
    id: str
    title: str
    organization: str
    status: str
    assignee: str
    """An agent's name, or `user`."""
    reason: str
    """Why it waits, in one sentence, and what would change that; what its run does, while it is in progress."""
    project: str
    mode: str
    priority: int
    user: str
    order: str | None
    """Of the newest run."""
    hand_offs: int
    created_at: datetime
    updated_at: datetime
    queued_at: datetime
    ended_at: datetime | None
    current_run_elapsed_seconds: float | None
    """While it is in progress (S-025)."""
    total_duration_seconds: float
    totals: Totals


class TaskDocument(TaskSummary):
    description: str
    session: str
    limits: dict[str, Any]
    branch: str | None
    """Of the newest run that changed files."""
    head_commit: str | None
    pushed: bool
    pull_request: dict[str, Any] | None
    timeline: list[TimelineEntry]
    note: str = ""
    """What an action did, and what happens next, in the answer to it."""
    stopped_run: str | None = None
    """The run that preempt or cancel asked to stop, in the answer to it."""
    warnings: list[str] = Field(default_factory=list)


class StatusDocument(Document):
    """`fleet status` (S-122)."""

    server: str
    version: str
    organization: str
    paused: bool
    drones: dict[str, int]
    """How many there are of each status."""
    orders: dict[str, int]
    """Of those that have not ended, how many are in each state."""
    tasks: dict[str, int]
    active_runs: int
    max_concurrency: int
    totals: Totals


# --- what makes tasks by itself, and what is told --------------------------------------------


class ScheduleRequest(Request):
    name: str
    cron: str
    timezone: str = "UTC"
    missed: Literal["once", "skip"] = "once"
    task: TaskRequest


class ScheduleEdit(Request):
    cron: str | None = None
    timezone: str | None = None
    missed: Literal["once", "skip"] | None = None
    task: TaskRequest | None = None
    enabled: bool | None = None


class ScheduleDocument(Document):
    id: str
    name: str
    cron: str
    timezone: str
    missed: str
    task: dict[str, Any]
    enabled: bool
    next_at: datetime | None
    """Null while it is disabled."""
    upcoming: list[datetime]
    """The next few, by which a person sees whether the line says what they mean."""
    last_at: datetime | None
    last_task: str | None
    last_error: str
    created_at: datetime


TriggerKind = Literal["github", "gitlab", "gitea", "standard"]


class TriggerRequest(Request):
    name: str
    kind: TriggerKind
    secret: str | None = Field(None, repr=False)
    """None: one is made, and shown once."""
    events: list[str] = Field(default_factory=list)
    """Not given: those that the kind is mostly wanted for; an empty list: all."""
    task: TaskRequest = Field(default_factory=lambda: TaskRequest(title=""))
    """Title and description are templates; an empty title, and no description: the kind's own."""


class TriggerEdit(Request):
    secret: str | None = Field(None, repr=False)
    events: list[str] | None = None
    task: TaskRequest | None = None
    enabled: bool | None = None


class TriggerDocument(Document):
    id: str
    name: str
    kind: str
    url: str
    """Where the code host sends its requests."""
    secret: str | None
    """Shown once, when it is made."""
    events: list[str]
    task: dict[str, Any]
    enabled: bool
    last_at: datetime | None
    last_task: str | None
    last_error: str
    created_at: datetime


class HookAnswer(Document):
    """What the sender of a hook is told."""

    outcome: Literal["task", "ignored", "repeated"]
    task: str | None
    why: str


class WebhookRequest(Request):
    name: str
    url: str
    secret: str | None = Field(None, repr=False)
    """`whsec_…`; None: one is made, and shown once."""
    events: list[str] = Field(default_factory=list)


class WebhookEdit(Request):
    url: str | None = None
    secret: str | None = Field(None, repr=False)
    events: list[str] | None = None
    enabled: bool | None = None


class WebhookDocument(Document):
    id: str
    name: str
    url: str
    secret: str | None
    events: list[str]
    enabled: bool
    failing_since: datetime | None
    waiting: int
    """Messages that were not taken yet."""
    last_at: datetime | None
    last_error: str
    created_at: datetime


class WebhookDeliveryDocument(Document):
    id: str
    event: str
    attempts: int
    status_code: int | None
    error: str
    created_at: datetime
    next_at: datetime | None
    done_at: datetime | None


class PullRequestRequest(Request):
    title: str | None = None
    """None: the first line of what the work is about."""
    draft: bool = False


class PullRequestDocument(Document):
    """What became of an order's pull request."""

    state: Literal["asked", "opened", "updated", "ready", "failed"]
    url: str | None
    number: int | None
    via: str
    head: str
    base: str | None
    title: str
    body: str
    why: str
    order: str
    """The service order that did it."""
