"""The work order as sent to a drone: all that the drone needs besides git (G-006, fixed: no key in clear text)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from shared.budgets import Money
from shared.code_hosts import SyncCodeHost
from shared.events import Finding, Spent
from shared.messages import Message
from shared.plans import PlanProgress
from shared.wire import Wire

Mode = Literal["plan", "build", "test", "ship", "develop"]
Approve = Literal["yolo", "risky", "all"]
"""Which calls wait for approval: none, those that could do harm, all that change something."""
Purpose = Literal["work", "describe", "pull_request", "check_provider", "check_project", "title", "push", "code_host"]
"""The kind of work: work on the project with the loop, or a small service that leaves no work behind."""
CHECKS = ("check_provider", "check_project")
"""Purposes of orders that only try whether the order's provider, or its project, works."""
GIVES_WAY = (*CHECKS, "title")
"""Purposes of orders that go to a drone only while it has a free slot, and give it up to any other order."""
Protocol = Literal["auto", "tools", "text"]
RotationOrder = Literal["off", "alternate", "random"]
"""Which provider answers: the first until it fails, each in turn, or one at random."""
ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh"]
"""How much a model thinks before it answers."""


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
    compaction_enabled: bool = True
    """Whether the conversation is compacted without being asked, when the window is full."""
    reserve_tokens: int = Field(0, ge=0)
    """Room for the answer below the window (O-071); 0: a quarter of the window, at most 8192."""
    keep_recent_tokens: int = Field(0, ge=0)
    """What a compaction keeps of the end of the conversation; 0: a quarter of the window, at most 16384."""


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
    left: tuple[Message, ...] = ()
    """The branch that a user left, to be summarized before the turn; shortened. Empty: none is to be."""
    left_leaf: str = ""
    """Its last entry, which the step with the summary names."""
    left_summary: str = ""
    """Its summary, if an earlier run of the order wrote it."""


class ModeDefinition(Wire):
    """A mode that is not built in. `session.mode` is then `plan` if it changes no files, else `build`."""

    name: str
    text: str
    """The section of the system prompt."""
    tools: tuple[str, ...] = ()
    """The tools that the model may call besides `shared.tool_names.ALWAYS`; empty: all."""


CREDENTIAL_PARAMS = frozenset(
    {
        *("api_key", "api_base", "base_url", "fallbacks", "custom_llm_provider", "deployment_id", "azure"),
        *("model_list", "user_config", "litellm_credential_name", "use_litellm_proxy", "use_xai_oauth"),
        *("callbacks", "success_callback", "failure_callback"),
        *("aws_access_key_id", "aws_secret_access_key", "aws_session_token", "aws_session_name", "aws_session_tags"),
        *("aws_profile_name", "aws_role_name", "aws_batch_role_arn", "aws_external_id", "aws_web_identity_token"),
        *("aws_sts_endpoint", "aws_bedrock_runtime_endpoint", "sagemaker_base_url", "deployment_url"),
        *("s3_access_key_id", "s3_secret_access_key", "s3_encryption_key_id", "s3_endpoint_url", "s3_region_name"),
        *("s3_bucket_name", "s3_bucket_owner", "s3_output_bucket_name", "bucket_name", "gcs_bucket_name"),
        *("azure_ad_token", "azure_username", "azure_password", "azure_scope"),
        *("tenant_id", "client_id", "client_secret"),
        *("vertex_credentials", "vertex_ai_credentials", "watsonx_credentials"),
        *("gigachat_access_token", "gigachat_auth_url", "gigachat_scope"),
        *("openai_identity_provider_id", "openai_identity_token_file", "openai_service_account_id"),
        *("anthropic_disable_workload_identity_federation", "anthropic_federation_rule_id"),
        *("anthropic_federation_workspace_id", "anthropic_organization_id", "anthropic_service_account_id"),
        *("anthropic_identity_source", "anthropic_identity_token", "anthropic_identity_token_file"),
        *("anthropic_issuer_audience", "anthropic_issuer_signing_key_ref", "anthropic_issuer_subject"),
        *("anthropic_issuer_ttl_seconds", "anthropic_issuer_url"),
        *("anthropic_keycloak_auth_method", "anthropic_keycloak_client_id", "anthropic_keycloak_client_secret_ref"),
        *("anthropic_keycloak_scope", "anthropic_keycloak_token_url"),
    }
)
"""Parameters of LiteLLM that contain or choose credentials, or where these are sent: they could be the drone's own."""
OWN_PARAMS = CREDENTIAL_PARAMS | {"model", "messages", "tools", "stream", "stream_options"}
"""Model parameters that the loop sets itself. An API key given as a parameter would be stored in clear text."""


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
    rotation: RotationOrder = "off"
    """How the provider and its fallbacks take turns."""
    thinking: ThinkingLevel | None = None
    """None: as much as the model thinks by default, or as `params` say."""
    limited: bool = False
    """A limit per minute is set, so that already the first call needs a permit (`shared.rates`)."""


class OrderMemory(Wire):
    """The notes of earlier work that users kept, each one line."""

    organization: tuple[str, ...] = ()
    """For all projects."""
    project: tuple[str, ...] = ()


class OrderReviewer(Wire):
    """The second model, which reads the change before it is delivered."""

    provider: OrderProvider
    findings: tuple[Finding, ...] | None = None
    """What it found in an earlier run of the order, if this run's conversation lacks it; None: it is still to be
    asked."""


class Base(Wire):
    """The starting point of the work. Both None: the tip of the project's branch."""

    commit: str | None = None
    branch: str | None = None
    """The branch on the remote that has the commit, if it was pushed."""
    bundle: str | None = None
    """SHA-256 of a git bundle blob with the commit, in case the remote does not have it."""
    bundle_run: str | None = None
    """The run to which the bundle blob belongs."""
    unpushed_branch: str | None = None
    """The branch of that work if the fleet could not push it; a user may have."""
    seen: str | None = None
    """What the session's last turn started from, if it left no work itself: it may have had commits of users."""
    given: bool = False
    """The user named the commit, which the repository must have."""


class MergedWork(Wire):
    """Another order's work, which is merged into the base."""

    order: str
    base: Base
    """Where its commit is."""
    branch: str = ""
    """Instead of an order's work, the tip of this branch of the remote; `order` is empty, and `base` has its commit."""


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
    """What the checkpoint does not have, each with the reason."""
    kept_on_disk: tuple[str, ...] = ()
    """What it does not have either, but the disk of the drone that took it."""
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


class WriteTitle(Wire):
    """Service: write the title of a session."""

    session: str
    prompt: str
    """The beginning of the session's first prompt."""


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


class PushWork(Wire):
    """Service: push the stored work of an order that ended without a push."""

    order: str
    branch: str
    work: Base
    """Where its commit is."""


class SaidBefore(Wire):
    """A user message to the order before it was sent; the run receives it as if it arrived while the run begins."""

    text: str
    after: bool = False
    message: str = ""
    alone: bool = False
    """As in `shared.control.Say`."""


class CarriedComment(Wire):
    """A review comment that the run's conversation contains."""

    id: str
    answered: bool = False


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
    mode: ModeDefinition | None = None
    """None: a built-in mode. Only for drones with the ability `modes`."""
    agent: str | None = None
    task: str | None = None
    purpose: Purpose = "work"
    team: Team | None = None
    """Set if `agent` and `task` are."""
    describe: Describe | None = None
    pull_request: OpenPullRequest | None = None
    title: WriteTitle | None = None
    push: PushWork | None = None
    code_host: SyncCodeHost | None = None
    provider: OrderProvider
    limits: Limits = Limits()
    money: Money | None = None
    """None from a control plane that keeps no account of money."""
    approve: Approve = "yolo"
    allow: tuple[str, ...] = ()
    """Commands that need no approval, as shell patterns for the whole line: `git status*`."""
    base: Base = Base()
    merges: tuple[MergedWork, ...] = ()
    """Merged into the base in this order, before anything else; only for drones with the ability `merges`."""
    merge_only: bool = False
    """The model is asked only about conflicts of the merge and about checks that fail after it."""
    context: tuple[Message, ...] = ()
    """The session so far, without system prompt."""
    context_blob: str | None = None
    """SHA-256 of a blob with the context as a JSON list, if it is larger than 64 kB."""
    resumed: Resumed | None = None
    """Resume from here instead of sending the prompt: `context` contains the conversation up to this point."""
    questions: bool = False
    """Whether the agent may ask its user with the tool `ask`; False from a control plane that cannot pass questions
    on."""
    plan: PlanProgress | None = None
    """Set if a person must approve a plan before anything is changed; only for drones with the ability `plans`."""
    keep_raw: bool = False
    """Keep each raw answer of the provider; only for drones with the ability `raw-answers`. One that cannot be acted on
    is always kept."""
    ticket: str | None = None
    """What the change is for; a drone that does not know it leaves it out of its commits."""
    memory: OrderMemory | None = None
    """None from a control plane that keeps no notes: the agent can then propose none."""
    prompt: str
    said: tuple[SaidBefore, ...] = ()
    reviewer: OrderReviewer | None = None
    """None: no reviewer is wanted, or its remarks are in `context`; only for drones with the ability `reviewer`."""
    review: tuple[CarriedComment, ...] = ()
    """The comments of reviews in this conversation; empty if none is left to answer."""
    submitted_at: datetime
