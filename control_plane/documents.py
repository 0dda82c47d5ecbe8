"""The documents that people and scripts get: the same in the terminal, over HTTP and in MCP (product page, `--json`).

Names and ids are strings, times are ISO 8601 in UTC, what is unknown is null and never left out.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from shared.trailers import Trailer
from shared.work_order import Approve, Mode, Protocol

MAX_WINDOW = 1_000_000_000
"""Tokens."""
PullRequests = Literal["never", "ready", "open"]


class Document(BaseModel):
    """A read-only answer."""

    model_config = ConfigDict(frozen=True)


class Request(BaseModel):
    """What a caller sends; a field that does not exist is refused rather than ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")


# --- requests ------------------------------------------------------------------------


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
    verify_attempts: int | None = Field(None, ge=0, le=1000)
    approval_timeout: float | None = Field(None, ge=0)
    """Seconds; 0: a call waits for a person as long as it takes."""
    progress_timeout: float | None = Field(None, ge=0)
    """Seconds without any sign of progress after which a run is ended; 0: never."""
    max_attempts: int | None = Field(None, ge=1, le=100)
    """How many runs may be lost before the order fails; None: 3."""
    approve: Approve | None = None
    """None: what the session asks for, else yolo."""
    allow: list[str] = Field(default_factory=list)
    """Commands that need no approval, as shell patterns, beside those of the session."""


class ResumeRequest(Request):
    """Limits that are set count from here on; the others stay, and count anew."""

    max_iterations: int | None = Field(None, ge=0)
    cost_limit: float | None = Field(None, ge=0)
    max_run_seconds: float | None = Field(None, ge=0)
    say: str | None = None
    """What its run hears first."""


class SayRequest(Request):
    text: str
    after: bool = False
    """Wait until the model stops."""
    interrupt: bool = False
    """Break off what runs now."""


class DecideRequest(Request):
    call: str | None = Field(None, max_length=1000)
    """The id of the call; None: the one that waits longest."""
    comment: str = ""
    """For the model, and for those who read it later."""


class ApproveRequest(DecideRequest):
    always: bool = False
    """Let the same command through in later orders of the session."""


class ProviderRequest(Request):
    name: str
    model: str
    api_base: str | None = None
    context_window: int = Field(0, ge=0, le=MAX_WINDOW)
    """Tokens; 0: what is known of the model."""
    protocol: Protocol = "auto"
    params: dict[str, Any] = Field(default_factory=dict)
    fallbacks: list[str] = Field(default_factory=list)
    api_key: str | None = Field(None, repr=False)
    key_variable: str | None = None


class ProviderEdit(Request):
    """Only the fields that are set change."""

    model: str | None = None
    api_base: str | None = None
    context_window: int | None = Field(None, ge=0, le=MAX_WINDOW)
    protocol: Protocol | None = None
    params: dict[str, Any] | None = None
    fallbacks: list[str] | None = None
    api_key: str | None = Field(None, repr=False)
    key_variable: str | None = None
    no_key: bool = False


class ProjectRequest(Request):
    slug: str
    git_url: str = Field(repr=False)
    name: str | None = None
    branch: str | None = None
    setup: list[str] = Field(default_factory=list)
    verify: list[str] = Field(default_factory=list)
    provider: str | None = None
    budget_usd_day: float | None = Field(None, ge=0)
    pull_requests: PullRequests = "never"
    """What becomes of an order that succeeded and was pushed: nothing, a title and a text, or a pull request."""
    trailers: list[Trailer] = Field(default_factory=list)
    """Which trailers its commits and pull requests carry; none: Fleet-Order."""


class ProjectEdit(Request):
    """Only the fields that are set change."""

    git_url: str | None = Field(None, repr=False)
    name: str | None = None
    branch: str | None = None
    setup: list[str] | None = None
    verify: list[str] | None = None
    provider: str | None = None
    budget_usd_day: float | None = Field(None, ge=0)
    pull_requests: PullRequests | None = None
    trailers: list[Trailer] | None = None


class JoinTokenRequest(Request):
    expires_s: int = Field(3600, ge=1, le=30 * 24 * 3600)
    uses: int = Field(1, ge=1, le=10_000)
    labels: dict[str, str] = Field(default_factory=dict)
    serves: list[str] = Field(default_factory=list)
    """Organizations that its drones work for beside their own, by name; `*`: all."""


class ApiTokenRequest(Request):
    role: str
    name: str = ""
    expires_s: int | None = Field(None, ge=1, le=10 * 366 * 24 * 3600)
    everywhere: bool = False
    """It may act in every organization."""


# --- answers --------------------------------------------------------------------------


class DroneDocument(Document):
    id: str
    name: str
    organization: str | None
    """Whose it is; null where that is none of the caller's business: it only serves them."""
    serves: list[str]
    """The organizations that it works for beside its own, as far as the caller may know of them; `*`: all."""
    status: str
    labels: dict[str, str]
    concurrency: int
    running: int
    queued: int
    sandbox: str
    version: str
    host: str
    draining: bool
    registered_at: datetime
    last_seen_at: datetime | None
    note: str = ""
    """What people should know of it: that it runs on another machine than it was registered on."""
    doing: list[dict[str, Any]] = Field(default_factory=list)
    """What each run in hand does, from the last beat."""


class ProviderDocument(Document):
    id: str
    name: str
    model: str
    api_base: str | None
    context_window: int
    protocol: str
    params: dict[str, Any]
    fallbacks: list[str]
    key: str
    """`sealed`, `on drone: VARIABLE` or `none`; never the key."""
    created_at: datetime


class ProjectDocument(Document):
    id: str
    slug: str
    name: str
    git_url: str
    """Without a password."""
    branch: str | None
    setup: list[str]
    verify: list[str]
    provider: str | None
    budget_usd_day: float | None
    pull_requests: str
    trailers: list[str]
    created_at: datetime


class JoinTokenDocument(Document):
    id: str
    token: str | None
    """Shown once, when it is created."""
    labels: dict[str, str]
    serves: list[str]
    """As on its drones."""
    uses: int
    used: int
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None


class ApiTokenDocument(Document):
    id: str
    token: str | None
    """Shown once, when it is created."""
    name: str
    role: str
    everywhere: bool
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None


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
    """When something last came of it: an event, text, output."""
    waits_for: str
    """`person` or `provider` where it is quiet for a reason; else empty."""
    late: bool
    resumed_from: str | None
    """The run whose checkpoint this one went on from."""


class StepDocument(Document):
    """`seq, kind, run, at`, and beside them the fields of the step's own kind (`shared.events`).

    `undone` is true where a later run went on from before this step: it is kept, and not part of the conversation.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    seq: int
    kind: str
    run: str
    at: datetime
    undone: bool = False


class WaitingDocument(Document):
    """A call that waits for a person."""

    call_id: str
    tool: str
    why: str
    until: datetime | None
    """Then it counts as denied; null: never."""


class WordDocument(Document):
    """Something that a person said."""

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
    """So many runs may be lost; then the order fails."""
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
    """What the project's own commands said; null until the order has ended."""
    waiting_for: WaitingDocument | None
    agent: str | None
    """The agent whose turn on `task` it is."""
    task: str | None
    purpose: str
    """work, or a small service of the fleet's: describe, pull_request."""
    pull_request: dict[str, Any] | None
    """`team_documents.PullRequestDocument`, where one was asked for."""
    doing: str = ""
    """What its run does, for how long, and from two minutes of silence on that nothing comes of it; else empty."""
    stats: StatsDocument


class OrderDocument(OrderSummary):
    """All that is known of an order (`fleet show --json`)."""

    todo: list[dict[str, Any]]
    """The model's list, as it was last."""
    unheard: list[WordDocument]
    """What people said and the run has not taken up."""
    patch: str | None
    """The text; '' if nothing changed, null over 1 MB or while there is none yet."""
    runs: list[RunDocument]
    steps: list[StepDocument]
