"""The work order as it travels to a drone: all that the drone needs besides git (G-006, mended: no key in clear)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from shared.events import Spent
from shared.messages import Message
from shared.wire import Wire

Mode = Literal["plan", "build", "test", "ship", "develop"]
Approve = Literal["yolo", "risky", "all"]
"""Which calls wait for a person: none, those that could do harm, all that change something."""
Purpose = Literal["work", "describe", "pull_request"]
"""What is to be done: work on the project with the loop, or a small service that leaves no work behind."""
Protocol = Literal["auto", "tools", "text"]


class Limits(Wire):
    """What a run may spend; 0 means no limit."""

    max_iterations: int = Field(50, ge=0)
    """Answers of the model."""
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
    """Seconds that a call waits for a person; then it counts as denied. They do not count as the run's time."""
    progress_timeout: float = Field(900, ge=0)
    """Seconds without any sign of progress (an event, text, output) after which the run is ended."""
    verify_attempts: int = Field(2, ge=0)
    """How often a failed verification goes back to the model."""


class OrderProject(Wire):
    """The repository, and what the project asks for around a run."""

    id: str
    name: str
    slug: str
    git_url: str
    branch: str | None = None
    """None: the remote's default branch."""
    setup: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    trailers: tuple[str, ...] = ()
    """Which trailers its commits carry: `Assisted-by`, `Fleet-Order`."""


class OrderSession(Wire):
    """The chat that this order is a turn of."""

    id: str
    name: str
    mode: Mode = "build"
    leaf: str | None = None
    """The entry of the session that this turn goes on from."""
    compact: str | None = None
    """Somebody asked for a compaction before the turn begins, with these instructions, which may be empty."""


class OrderProvider(Wire):
    """Where the model is reached. Either `api_key` (sealed in transit) or `key_variable` (never left the drone)."""

    name: str
    model: str
    """LiteLLM's name, `openai/gpt-x`."""
    api_base: str | None = None
    api_key: str | None = Field(None, repr=False)
    key_variable: str | None = None
    context_window: int = Field(0, ge=0)
    """Tokens; 0: what litellm knows of the model, else 131,072."""
    protocol: Protocol = "auto"
    """How the model calls tools: natively, or as text in fenced blocks; auto: natively where it can."""
    params: dict[str, Any] = Field(default_factory=dict)
    """temperature, top_p, top_k, max_tokens and whatever else the endpoint takes."""
    fallbacks: tuple[OrderProvider, ...] = ()


class Base(Wire):
    """What the work starts from. Both None: the tip of the project's branch."""

    commit: str | None = None
    branch: str | None = None
    """The branch on the remote that has the commit, where it was pushed."""
    bundle: str | None = None
    """SHA-256 of a git bundle blob that has the commit, for when the remote does not."""
    bundle_run: str | None = None
    """The run whose blob that bundle is."""


class Resumed(Wire):
    """Where an earlier run of the order was when it ended, for the run that goes on from there."""

    run_id: str
    seq: int
    """Of the checkpoint in that run; the order's context ends with it."""
    base: str | None = None
    """The commit that the order began from; None in an empty repository."""
    commit: str = ""
    """The workspace at the checkpoint; empty: as the base."""
    head: str = ""
    """The agent's own last commit there; empty: the base."""
    bundle: str | None = None
    """SHA-256 of the blob with the commit, for a drone that does not have it."""
    bundle_run: str | None = None
    left_out: tuple[str, ...] = ()
    cut_off: bool = False
    """A step had begun after the checkpoint."""
    why: str = ""
    """One sentence: what ended the earlier run."""
    by_hand: bool = False
    """A person asked for it; the limits count anew."""
    spent: Spent = Spent()
    """What the limits were charged with up to the checkpoint; nothing where a person asked."""


class RosterAgent(Wire):
    """One agent of an organization, as the others know it."""

    name: str
    boss: str | None = None
    description: str = ""


class Team(Wire):
    """Whose turn on which task this order is. The prompt is the task's briefing."""

    organization: str
    purpose: str = ""
    """What the organization is for."""
    roster: tuple[RosterAgent, ...] = ()
    """All its agents, by name; the same bytes for every order until somebody changes them."""
    agent: str
    instructions: str | None = None
    """The agent's own, where they were uploaded."""
    instructions_path: str | None = None
    """Else the file of the repository's default branch that has them."""
    instructions_url: str | None = Field(None, repr=False)
    """The repository of that file, where it is not the order's own."""
    boss: str | None = None
    reports: tuple[str, ...] = ()
    task: str
    """`PAYM-0001`."""
    comments: int = 0
    """That earlier runs of this order wrote; an agent that never wrote one is asked to."""
    unseen: tuple[str, ...] = ()
    """Those among them that this run's conversation does not show: they were cut off with their step, and stay."""


class Describe(Wire):
    """Service: write an agent's description from its instructions (S-012)."""

    agent: str
    instructions: str | None = None
    instructions_path: str | None = None


class OpenPullRequest(Wire):
    """Service: open a pull request from a branch that is on the remote, or bring the open one up to date."""

    head: str
    """The branch."""
    base: str | None = None
    """None: the remote's default branch."""
    title: str
    body: str
    """Put into the repository's template, where it has one."""
    draft: bool = False
    replaces: int | None = None
    """The number of the one before it, of the same work: closed once this one is open, with a word that names it."""


class SaidBefore(Wire):
    """What a person said to the order before it was sent; the run hears it as if it were said while it begins."""

    text: str
    after: bool = False


class WorkOrder(Wire):
    """One prompt to be executed on one project by one drone."""

    version: int = 1
    order_id: str
    run_id: str
    generation: int
    """Counts dispatches of the order; fences everything that a run does."""
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
    """Given where `agent` and `task` are."""
    describe: Describe | None = None
    pull_request: OpenPullRequest | None = None
    provider: OrderProvider
    limits: Limits = Limits()
    approve: Approve = "yolo"
    allow: tuple[str, ...] = ()
    """Commands that need no approval, as shell patterns over the whole line: `git status*`."""
    base: Base = Base()
    context: tuple[Message, ...] = ()
    """The session so far, without system prompt."""
    context_blob: str | None = None
    """SHA-256 of a blob with the context as a JSON list, when it is over 64 kB."""
    resume: bool = False
    """Whether `resumed` is given."""
    resumed: Resumed | None = None
    """Go on from here instead of putting the prompt: `context` holds all that was said up to there."""
    prompt: str
    said: tuple[SaidBefore, ...] = ()
    submitted_at: datetime
