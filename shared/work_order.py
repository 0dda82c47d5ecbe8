"""The work order as sent to a drone: all that the drone needs besides git (G-006, fixed: no key in clear text)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from shared.budgets import Money
from shared.events import Spent
from shared.messages import Message
from shared.wire import Wire

Mode = Literal["plan", "build", "test", "ship", "develop"]
Approve = Literal["yolo", "risky", "all"]
"""Which calls wait for approval: none, those that could do harm, all that change something."""
Purpose = Literal["work", "describe", "pull_request", "check_provider", "check_project"]
"""The kind of work: work on the project with the loop, or a small service that leaves no work behind."""
CHECKS = ("check_provider", "check_project")
"""Purposes of orders that only try whether the order's provider, or its project, works."""
Protocol = Literal["auto", "tools", "text"]


class Limits(Wire):
    """What a run may spend; 0 means no limit."""

    max_iterations: int = Field(50, ge=0)
    """Number of model answers."""
    cost_limit: float = Field(3.0, ge=0)
    """USD."""
    token_limit: int = Field(0, ge=0)
    """Input and output together."""
    max_run_seconds: float = Field(1800, ge=0)
    command_timeout: float = Field(120, ge=0)
    """Seconds for one shell command, unless the call asks for another."""
    max_format_errors: int = Field(3, ge=1)
    """Consecutive answers that cannot be acted on."""
    retry_enabled: bool = True
    max_retries: int = Field(3, ge=0)
    base_delay: float = Field(2.0, ge=0)
    approval_timeout: float = Field(86400, ge=0)
    """Seconds that a call waits for a person; then it counts as denied. The wait does not count as the run's time."""
    progress_timeout: float = Field(900, ge=0)
    """Seconds without any sign of progress (an event, text, output) after which the run is ended."""
    verify_attempts: int = Field(2, ge=0)
    """How often a failed verification is returned to the model."""


class OrderProject(Wire):
    """The repository, and the project's settings for a run."""

    id: str
    name: str
    slug: str
    git_url: str
    branch: str | None = None
    """None: the remote's default branch."""
    setup: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    trailers: tuple[str, ...] = ()
    """The trailers of its commits: `Assisted-by`, `Fleet-Order`."""


class OrderSession(Wire):
    """The chat in which this order is a turn."""

    id: str
    name: str
    mode: Mode = "build"
    leaf: str | None = None
    """The entry of the session from which this turn continues."""
    compact: str | None = None
    """Instructions of a requested compaction before the turn, possibly empty; None: no compaction was requested."""


class OrderProvider(Wire):
    """The model's endpoint. Either `api_key` (sealed in transit) or `key_variable` (the key never leaves the drone)."""

    name: str
    model: str
    """LiteLLM's name, `openai/gpt-x`."""
    api_base: str | None = None
    api_key: str | None = Field(None, repr=False)
    key_variable: str | None = None
    context_window: int = Field(0, ge=0)
    """Tokens; 0: litellm's value for the model, else 131,072."""
    protocol: Protocol = "auto"
    """How the model calls tools: natively, or as text in fenced blocks; auto: natively if it can."""
    params: dict[str, Any] = Field(default_factory=dict)
    """temperature, top_p, top_k, max_tokens and any other parameter that the endpoint accepts."""
    fallbacks: tuple[OrderProvider, ...] = ()
    limited: bool = False
    """A limit per minute is set, so that already the first call needs a permit (`shared.rates`)."""


class Base(Wire):
    """The starting point of the work. Both None: the tip of the project's branch."""

    commit: str | None = None
    branch: str | None = None
    """The branch on the remote that has the commit, if it was pushed."""
    bundle: str | None = None
    """SHA-256 of a git bundle blob with the commit, in case the remote does not have it."""
    bundle_run: str | None = None
    """The run to which the bundle blob belongs."""


class Resumed(Wire):
    """The checkpoint of an earlier run of the order, for the run that resumes from it."""

    run_id: str
    seq: int
    """The checkpoint's seq in that run; the order's context ends with it."""
    base: str | None = None
    """The commit from which the order started; None in an empty repository."""
    commit: str = ""
    """The workspace at the checkpoint; empty: same as the base."""
    head: str = ""
    """The agent's last commit there; empty: the base."""
    bundle: str | None = None
    """SHA-256 of the blob with the commit, for a drone that does not have it."""
    bundle_run: str | None = None
    left_out: tuple[str, ...] = ()
    cut_off: bool = False
    """A step had begun after the checkpoint."""
    why: str = ""
    """One sentence: what ended the earlier run."""
    by_hand: bool = False
    """A person requested it; the limits start from zero."""
    spent: Spent = Spent()
    """The amounts charged to the limits up to the checkpoint; zero if a person requested it."""


class RosterAgent(Wire):
    """One agent of an organization, as seen by the others."""

    name: str
    boss: str | None = None
    description: str = ""


class Team(Wire):
    """The agent and task whose turn this order is. The prompt is the task's briefing."""

    organization: str
    purpose: str = ""
    """The organization's purpose."""
    roster: tuple[RosterAgent, ...] = ()
    """All its agents, sorted by name; the same bytes for every order until an agent changes."""
    agent: str
    instructions: str | None = None
    """The agent's instructions, if they were uploaded."""
    instructions_path: str | None = None
    """Otherwise, their file on the repository's default branch."""
    instructions_url: str | None = Field(None, repr=False)
    """The repository of that file, if it is not the order's repository."""
    boss: str | None = None
    reports: tuple[str, ...] = ()
    task: str
    """`PAYM-0001`."""
    comments: int = 0
    """Number of comments written by earlier runs of this order; an agent that never wrote one is asked to."""
    unseen: tuple[str, ...] = ()
    """Those of them that this run's conversation does not show: their step was cut off, but they stay in the thread."""


class Describe(Wire):
    """Service: write an agent's description from its instructions (S-012)."""

    agent: str
    instructions: str | None = None
    instructions_path: str | None = None


class OpenPullRequest(Wire):
    """Service: open a pull request from a branch on the remote, or update the open one."""

    head: str
    """The branch."""
    base: str | None = None
    """None: the remote's default branch."""
    title: str
    body: str
    """Inserted into the repository's template, if it has one."""
    draft: bool = False
    replaces: int | None = None
    """Number of the previous pull request for the same work; closed once this one is open, with a comment naming it."""


class SaidBefore(Wire):
    """A user message to the order before it was sent; the run receives it as if it arrived while the run begins."""

    text: str
    after: bool = False


class WorkOrder(Wire):
    """One prompt to be executed on one project by one drone."""

    version: int = 1
    order_id: str
    run_id: str
    generation: int
    """Counts dispatches of the order; fences all actions of a run."""
    attempt: int = 1
    drone_id: str
    organization: str = "default"
    user: str = ""
    project: OrderProject
    session: OrderSession
    agent: str | None = None
    task: str | None = None
    purpose: Purpose = "work"
    team: Team | None = None
    """Set if `agent` and `task` are."""
    describe: Describe | None = None
    pull_request: OpenPullRequest | None = None
    provider: OrderProvider
    limits: Limits = Limits()
    money: Money | None = None
    """None from a control plane that keeps no account of money."""
    approve: Approve = "yolo"
    allow: tuple[str, ...] = ()
    """Commands that need no approval, as shell patterns for the whole line: `git status*`."""
    base: Base = Base()
    context: tuple[Message, ...] = ()
    """The session so far, without system prompt."""
    context_blob: str | None = None
    """SHA-256 of a blob with the context as a JSON list, if it is larger than 64 kB."""
    resume: bool = False
    """Whether `resumed` is set."""
    resumed: Resumed | None = None
    """Resume from here instead of sending the prompt: `context` contains the conversation up to this point."""
    prompt: str
    said: tuple[SaidBefore, ...] = ()
    submitted_at: datetime
