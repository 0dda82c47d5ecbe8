"""A drone's reports: the events of a run, its heartbeat, its hello, and streamed text.

An event is journaled on the drone before it is acted on, then sent. `(run_id, seq)` identifies it permanently; seq
starts at 1 and has no gaps.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from shared.messages import ToolCall
from shared.names import DRONE_NAME
from shared.plans import AgentPlan, PointReport
from shared.wire import Wire

FIRST_RELEASE = "release-1"
"""All that a drone of the first release can do; no drone without it is registered."""
ABILITIES = (FIRST_RELEASE,)
"""Abilities that a drone of this version declares. What a later version can do beyond the first release gets a name of
its own, which the control plane looks for in the drone's beat while drones without it may be registered."""


MAX_COUNT = 2**31 - 1
"""The largest integer that both databases store in a column."""
MAX_DOLLARS = 1e9
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Dollars = Annotated[float, Field(ge=0, le=MAX_DOLLARS)]
Percent = Annotated[float, Field(ge=0, le=100)]
Slots = Annotated[int, Field(ge=1, le=64)]
Seconds = Annotated[float, Field(ge=0, le=1e9)]
MAX_RUNS = 4096
"""Runs that one beat or hello may name. A drone runs 64 at a time; the others wait for their last events to arrive."""
_WITHOUT_NUL = r"^[^\x00]*$"
"""PostgreSQL stores no NUL."""
BootId = Annotated[str, Field(max_length=64, pattern=_WITHOUT_NUL)]
MachineId = Annotated[str, Field(max_length=128, pattern=_WITHOUT_NUL)]
Version = Annotated[str, Field(max_length=32, pattern=_WITHOUT_NUL)]
NetworkReach = Annotated[str, Field(max_length=32, pattern=_WITHOUT_NUL)]
SandboxKind = Annotated[str, Field(max_length=32, pattern=_WITHOUT_NUL)]
NameOrNone = Annotated[str, Field(pattern=f"^$|{DRONE_NAME}")]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Commit = Annotated[str, Field(pattern="^[0-9a-f]{40,64}$")]
SomeCommit = Annotated[str, Field(pattern="^([0-9a-f]{40,64})?$")]


class Usage(Wire):
    """Tokens and money of one model call. `cost_usd` None: the price is unknown, which is never the same as 0."""

    input_tokens: Count = 0
    output_tokens: Count = 0
    thinking_tokens: Count = 0
    cached_tokens: Count = 0
    """How many of the input tokens the provider read from its cache."""
    cost_usd: Dollars | None = None


class Stats(Wire):
    """Totals of a run."""

    tool_calls: Count = 0
    input_tokens: Count = 0
    thinking_tokens: Count = 0
    output_tokens: Count = 0
    cached_tokens: Count = 0
    """As in `Usage`."""
    cost_usd: Dollars | None = 0.0
    """None once any call had an unknown price."""
    duration_ms: Count = 0


class Spent(Wire):
    """The amounts charged to an order's limits so far, over all runs of one path."""

    iterations: int = 0
    """Number of model answers."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    """The known part."""
    seconds: float = 0.0


class Receipt(Wire):
    """Processes counted when a run was ended: found, ended by us, and still running."""

    found: int = 0
    ended: int = 0
    survivors: int = 0
    at: datetime
    unreachable_since: datetime | None = None


# --- bodies: lifecycle ---------------------------------------------------------


class RunStarted(Wire):
    """First event of every run: the run was claimed and has a process."""

    kind: Literal["run_started"] = "run_started"
    boot_id: str
    sandbox: str


class Phase(Wire):
    """The run's current phase, for people: preparing, setup, working, delivering."""

    kind: Literal["phase"] = "phase"
    name: str
    detail: str = ""


class Prepared(Wire):
    """The workspace is ready."""

    kind: Literal["prepared"] = "prepared"
    base_commit: Commit | None = None
    """None in an empty repository."""
    default_branch: str | None = None
    workspace: str = ""
    """The agent's working directory on the drone."""
    cloned_s: Seconds | None = None
    """How long the drone cloned the repository. None: it had a mirror, or another run cloned."""


class Delivered(Wire):
    """The results of the run. Blobs were stored before this event was written."""

    kind: Literal["delivered"] = "delivered"
    branch: str | None = None
    """None if nothing changed."""
    base_commit: Commit | None = None
    head_commit: Commit | None = None
    pushed: bool = False
    push_error: str | None = None
    patch_sha256: Sha256 | None = None
    patch_bytes: Count = 0
    branch_patch_sha256: Sha256 | None = None
    """What a pull request of the branch would show; the same as `patch_sha256` if no earlier work is on the branch.
    None if the branch has nothing."""
    bundle_sha256: Sha256 | None = None
    files_changed: Count = 0
    lines_added: Count | None = None
    """Of text files."""
    lines_removed: Count | None = None
    late_ref: str | None = None
    left_out: tuple[str, ...] = ()
    """What of the work could not be delivered: paths, each with the reason. Caches are no work."""


class RunEnded(Wire):
    """Last event of every run."""

    kind: Literal["run_ended"] = "run_ended"
    status: Literal["success", "failed", "preempted"]
    exit_status: str
    reason: str
    response: str = ""
    stats: Stats = Stats()
    receipt: Receipt | None = None
    give_back: bool = False
    """The order did not end: the drone returns it to the queue."""
    order_at_fault: bool = True
    """With status failed: running it again would end the same way."""
    unsuitable: bool = False
    """With `order_at_fault`: that is so on this drone, but another one may be able to run it."""
    verification: str = ""
    """A `shared.outcome.Verification`; empty from a drone that does not report it."""
    suspended: bool = False
    """With `give_back`: the order still waits for a person, and continues at the checkpoint once it is answered."""


# --- bodies: steps ---------------------------------------------------------------


class ReasoningStep(Wire):
    """The model's thinking before its next message, which is the following step."""

    kind: Literal["reasoning"] = "reasoning"
    text: str
    blocks: tuple[dict[str, Any], ...] = ()
    """As `Message.thinking_blocks`."""
    duration_ms: Count = 0
    """How long it streamed; 0 if it came at once."""


class AssistantStep(Wire):
    """A whole assistant message, after its stream ended."""

    kind: Literal["assistant"] = "assistant"
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    model: str = ""
    finish_reason: str = ""
    duration_ms: int = 0
    raw_sha256: Sha256 | None = None
    """Blob with the provider's answer as it came, one JSON object per line; None: it was not kept."""
    raw_note: str = ""
    """Why it was not kept although it should have been, or only in part."""


class ChargeStep(Wire):
    """Spending that no other step reports: on an answer that broke off, or one that is not part of the transcript."""

    kind: Literal["charge"] = "charge"
    about: Literal["broken_off", "summary", "service"]
    """`broken_off`: what the answer cost is unknown, so it counts with the most that it can have cost."""
    usage: Usage = Usage()
    model: str = ""


class UserStep(Wire):
    """A message that entered the transcript on behalf of users or the loop."""

    kind: Literal["user"] = "user"
    text: str
    source: Literal["prompt", "steer", "follow_up", "loop"] = "loop"
    message: str = ""
    """The id of the user's message; '' for other texts."""


class ToolCallStep(Wire):
    kind: Literal["tool_call"] = "tool_call"
    call_id: str
    tool: str
    arguments: Any = None
    """Parsed, or the model's text if it is not JSON."""


Execution = Literal["answered", "submitted", "timed_out", "broken_off", "held_back"]
"""The outcome of a call. `answered`: its tool, or the check of its arguments, gave the result. `submitted`: it declared
the work done. `timed_out`: its time limit ended it. `broken_off`: the run ended it early. `held_back`: it was never
executed."""


class ToolResultStep(Wire):
    kind: Literal["tool_result"] = "tool_result"
    call_id: str
    output: str
    execution: Execution = "answered"
    note: str = ""
    """A note added for the model: how the call ended, or a guardrail's warning. `output` ends with it."""
    return_code: int | None = None
    is_error: bool = False
    duration_ms: int = 0
    output_bytes: int = 0
    """Size of the whole output; `output` is the part shown to the model."""
    log_sha256: Sha256 | None = None
    """Blob with the full output, if it was longer than the part shown."""


class CommentStep(Wire):
    kind: Literal["comment"] = "comment"
    text: str
    to_task: bool = False
    """The agent wrote it to its task's thread; other comments are remarks on the run itself."""
    taken_back: tuple[str, ...] = ()
    """The ids of messages of users that the model was not given, because their senders took them back."""
    left_leaf: str = ""
    """The text is the summary of the branch with this last entry, which a user left."""


ReviewVerdict = Literal["done", "declined", "asks"]


class ReviewAnswerStep(Wire):
    """The agent answered a comment of a review."""

    kind: Literal["review_answer"] = "review_answer"
    comment: str
    """Its id."""
    verdict: ReviewVerdict
    """`done`: the work has what it asks for. `declined`: it will not, for the reason in `text`. `asks`: the agent has
    the question in `text`."""
    text: str = ""


Severity = Literal["error", "warning", "note"]


class Finding(Wire):
    """A remark of the reviewer on the change."""

    file: str
    line: Count | None = None
    """In the changed file; None: the remark is about all of it."""
    severity: Severity = "warning"
    text: str


class RememberStep(Wire):
    """The agent proposes a note for later orders. It has no effect until a user keeps it."""

    kind: Literal["remember"] = "remember"
    text: str
    why: str = ""
    scope: Literal["project", "organization"] = "project"
    """Whether the note is for the order's project or for all projects."""


class ReviewerStep(Wire):
    """A second model, the reviewer, read the change before it was delivered. What it costs counts for the run."""

    kind: Literal["reviewer"] = "reviewer"
    provider: str = ""
    model: str = ""
    findings: tuple[Finding, ...] = ()
    """Empty: it has no remarks, or there was no review."""
    problem: str = ""
    """Why there was no review, in one sentence; empty if there was one."""
    repeated: bool = False
    """The findings are those of an earlier run of the order, lost with what it did after its last
    checkpoint."""
    usage: Usage = Usage(cost_usd=0.0)
    """Without an answer, nothing: a call that broke off is a `ChargeStep`."""
    duration_ms: Count = 0


class RetryStep(Wire):
    """A model call failed and is retried after `delay_s`."""

    kind: Literal["retry"] = "retry"
    attempt: int
    delay_s: float
    error_class: str
    error: str


class CompactionStep(Wire):
    """From here on, `summary` replaces all earlier messages except the last `kept`; the replaced ones stay stored."""

    kind: Literal["compaction"] = "compaction"
    summary: str
    tokens_before: int = 0
    tokens_after: int = 0
    kept: int = 0
    """Messages at the end of the transcript that stayed unchanged."""
    cause: Literal["window", "overflow", "asked"] = "window"
    """The window was nearly full, the endpoint reported that it is full, or a compaction was requested."""
    files_read: tuple[str, ...] = ()
    files_changed: tuple[str, ...] = ()


class GuardrailStep(Wire):
    """A guardrail made a decision about a call."""

    kind: Literal["guardrail"] = "guardrail"
    call_id: str
    guardrail: str
    action: Literal["warn", "block", "halt"]
    code: str = ""
    reason: str = ""


WaitKind = Literal["approval", "secret", "limit", "budget", "branch", "question", "plan"]
"""`approval` of a call; `secret`: may work be delivered in which a secret was found? `limit`, `budget`: may the order
exceed its limit, has its budget been raised? `branch`: may it continue from a branch that was rewritten? `question`:
the agent asks, and the answer is a text. `plan`: the agent presents a plan, and the answer is the plan as approved.
"""
LimitKind = Literal["cost", "steps", "time"]
"""A limit that a person can raise while the run waits."""


class ApprovalStep(Wire):
    """A call, or the delivery, waits for a person; the order is `awaiting_approval` until then."""

    kind: Literal["approval"] = "approval"
    about: WaitKind = "approval"
    call_id: str
    tool: str
    why: str
    """Of a question: its text; of a plan: its title."""
    command: str = ""
    """All of what would run: a shell line, or the call's arguments; empty from drones that did not send it yet."""
    until: datetime | None = None
    """After this time, it counts as denied; of a question, its default counts."""
    choices: tuple[str, ...] = ()
    """Of a question: the suggested answers; empty: none."""
    default: str | None = None
    """Of a question: the answer that counts after `until`."""
    limit: LimitKind = "cost"
    """Of a limit: which one."""
    plan: AgentPlan | None = None
    """Of a plan: all of it, as its agent presented it."""


class DecisionStep(Wire):
    """A waiting call was decided: by a person, or by the clock."""

    kind: Literal["decision"] = "decision"
    about: WaitKind = "approval"
    call_id: str
    approved: bool
    """Of a question: whether there is an answer."""
    by: Literal["person", "clock", "interruption"] = "person"
    comment: str = ""
    answer: str = ""
    """Of a question: the person's answer, or the default."""
    who: str = ""
    """Of a question or a plan: the name of the person who answered."""
    plan: AgentPlan | None = None
    """Of an approved plan: the plan as edited, with the points to be carried out."""


class PlanStep(Wire):
    """The agent presented a plan; it waits for a person once the step is complete."""

    kind: Literal["plan"] = "plan"
    plan: AgentPlan


class PointReportStep(Wire):
    """The agent reported what became of an approved point of its plan; the last report on a point counts."""

    kind: Literal["point_report"] = "point_report"
    report: PointReport


class TodoItem(Wire):
    text: str
    status: Literal["pending", "in_progress", "done"] = "pending"


class TodoStep(Wire):
    """The model's complete list of remaining work; the last one applies."""

    kind: Literal["todo"] = "todo"
    items: tuple[TodoItem, ...] = ()


class VerifyStep(Wire):
    """One of the project's `verify` commands was run."""

    kind: Literal["verify"] = "verify"
    attempt: int
    """From 1; every failure that is returned to the model begins another."""
    command: str
    passed: bool
    return_code: int | None = None
    output: str = ""
    duration_ms: int = 0


class ChildStep(Wire):
    """A step of a child agent started by the call `call_id`; `step` is the step's body."""

    kind: Literal["child"] = "child"
    call_id: str
    step: dict[str, Any]

    @property
    def usage(self) -> Usage | None:
        """What an answer of the child used, of unknown cost if the step cannot be read; None for other steps."""
        if self.step.get("kind") != "assistant":
            return None
        try:
            return AssistantStep.model_validate(self.step).usage
        except ValidationError:
            return Usage()


class CheckpointStep(Wire):
    """A step of the loop is complete, and this is the workspace after it: a later run can resume here."""

    kind: Literal["checkpoint"] = "checkpoint"
    commit: SomeCommit = ""
    """The commit whose tree is the workspace; empty while nothing differs from the base."""
    head: SomeCommit = ""
    """The agent's last commit; empty while that is the base."""
    changed: bool = True
    """Whether this step changed anything."""
    bundle_sha256: Sha256 | None = None
    """Blob with the commit, from which other drones resume; None: there was nothing to store, or storing failed."""
    bundle_bytes: int = 0
    left_out: tuple[str, ...] = ()
    """Files that are not in it, each with the reason: they contain a known secret, or are too large."""
    kept_on_disk: tuple[str, ...] = ()
    """What is not in it either, but stays where it is on the drone's disk: caches, and changes inside submodules."""
    patch_sha256: Sha256 | None = None
    """Blob with the changes so far, for readers: without the content of binary files. None: nothing changed, it was
    withheld."""
    branch_patch_sha256: Sha256 | None = None
    """As in `Delivered`, and for readers."""
    patch_withheld: Literal["", "secret", "size"] = ""
    """Why there is no patch, or none of the branch: it would contain a secret, or it is too large."""
    spent: Spent = Spent()


class ResumedStep(Wire):
    """This run resumes from a checkpoint of an earlier one; steps after it in that run left the path."""

    kind: Literal["resumed"] = "resumed"
    run_id: str
    seq: int
    """The seq of the checkpoint in that run."""
    commit: str = ""
    cut_off: bool = False
    """A step had begun, and was undone inside the workspace."""
    in_place: bool = False
    """On the same drone, in the workspace left by the earlier run."""
    left_out: tuple[str, ...] = ()
    why: str = ""
    """One sentence: what ended the earlier run."""


class PullRequestStep(Wire):
    """The outcome of a requested pull request."""

    kind: Literal["pull_request"] = "pull_request"
    state: Literal["opened", "updated", "ready", "failed"]
    """ready: it could not be opened from here; title and body are prepared for a person to open it."""
    url: str | None = None
    number: int | None = None
    via: str = ""
    """`gh`, `glab`, `tea`, or the host's HTTP interface."""
    head: str = ""
    base: str | None = None
    title: str = ""
    body: str = ""
    why: str = ""
    """One sentence, if it was not opened."""


class ProviderCheckStep(Wire):
    """What came out when the drone tried the order's provider; what is not known is None."""

    kind: Literal["provider_check"] = "provider_check"
    ok: bool
    summary: str
    """One sentence: it works, or why it does not."""
    code: str = ""
    detail: str = ""
    """The endpoint's own words."""
    next: str = ""
    first_token_ms: Count | None = None
    """From the request to the first piece of the answer."""
    total_ms: Count | None = None
    price: Literal["set", "listed", "unknown"] | None = None
    """Set by the organization, from LiteLLM's list, or neither."""
    input_usd: Dollars | None = None
    """USD per million tokens."""
    output_usd: Dollars | None = None
    tool_calls: Literal["native", "text", "ignored"] | None = None
    """How the model calls tools; `ignored`: it was asked to call one, and answered without a call."""
    streams: bool | None = None
    reports_usage: bool | None = None
    context_window: Count | None = None
    window_from: Literal["set", "listed", "assumed"] | None = None


class CheckedCommand(Wire):
    """One of the project's commands, in a fresh workspace."""

    phase: Literal["setup", "verify"]
    command: str
    passed: bool
    return_code: int | None = None
    """None: it was ended, as when the time was up."""
    duration_ms: Count = 0
    output: str = ""
    """The end of the output, if it failed."""


class ProjectCheckStep(Wire):
    """What came out when the drone tried the order's project; what is not known is None."""

    kind: Literal["project_check"] = "project_check"
    ok: bool
    summary: str
    code: str = ""
    detail: str = ""
    next: str = ""
    remote_ms: Count | None = None
    """How long the remote took to list its refs."""
    default_branch: str | None = None
    branch: str | None = None
    """The branch that work starts from."""
    may_push: bool | None = None
    commands: tuple[CheckedCommand, ...] = ()
    """Those that were run, in order."""


class ErrorStep(Wire):
    """Something failed inside the run. `what` is for people, `detail` is the full text (S-084)."""

    kind: Literal["error"] = "error"
    what: str
    detail: str = ""
    code: str = ""
    next: str = ""
    """What to do about it; empty if nothing can be said."""
    ended_run: bool = False
    """It ended the run, whose reason says the same."""


class GapStep(Wire):
    """Events that the drone never delivered."""

    kind: Literal["gap"] = "gap"
    missing: int
    why: str = ""


Body = Annotated[
    RunStarted
    | Phase
    | Prepared
    | Delivered
    | RunEnded
    | ReasoningStep
    | AssistantStep
    | ChargeStep
    | UserStep
    | ToolCallStep
    | ToolResultStep
    | CommentStep
    | ReviewAnswerStep
    | ReviewerStep
    | RememberStep
    | RetryStep
    | CompactionStep
    | GuardrailStep
    | ApprovalStep
    | DecisionStep
    | PlanStep
    | PointReportStep
    | TodoStep
    | VerifyStep
    | ChildStep
    | CheckpointStep
    | ResumedStep
    | PullRequestStep
    | ProviderCheckStep
    | ProjectCheckStep
    | ErrorStep
    | GapStep,
    Field(discriminator="kind"),
]


class Event(Wire):
    """One line of a run's journal."""

    version: int = 1
    run_id: str
    order_id: str
    generation: int
    seq: int = Field(ge=1, le=MAX_COUNT)
    at: datetime
    """The drone's clock; the control plane also stores its own time."""
    body: Body


class Delta(Wire):
    """Streamed text: shown live, never stored; the whole message follows as a step."""

    run_id: str
    order_id: str
    kind: Literal["text", "thinking", "tool_call", "output"]
    """`output`: the output of a running command."""
    text: str
    after_seq: int = 0
    """The last event that the run had recorded by then; it must be shown before this text."""
    offset: int | None = None
    """Characters of the message's text and thinking that were sent before this; a follower that has not seen exactly
    these misses a part, and waits for the step. None for other kinds, and from drones that do not count."""


class RunBeat(Wire):
    """The activity of one run on the drone."""

    run_id: str
    order_id: str
    generation: int
    doing: str = ""
    doing_seconds: Seconds = 0.0
    """Duration of this activity when the beat was sent: clocks may differ, durations do not."""
    quiet_seconds: Seconds = 0.0
    """Time without any progress: no event, no text, no output."""
    waits_for: Literal["", "person", "provider"] = ""
    """The silence is expected: the run waits for a person, or for a delay that the provider requested."""
    last_seq: Count = 0
    ended: bool = False
    """The run stays in the beat until the control plane has confirmed the last seq."""


class MachineUse(Wire):
    """How busy the drone's machine is, with everything that runs on it."""

    cpu_percent: Percent
    memory_percent: Percent
    disk_free_mb: Count
    """Where the drone keeps its workspaces."""
    disk_mb: Count


class Beat(Wire):
    """Sent every 5 s."""

    drone_id: str
    machine_id: MachineId
    boot_id: BootId
    sent_at: datetime
    version: Version
    sandbox: SandboxKind
    concurrency: Slots
    warm: bool = False
    draining: bool = False
    full: str = ""
    """Where the drone's disks have too little space for another order (`80 MB free in /path`); '' if nowhere."""
    withheld: str = ""
    """Why the policy of its owner allows no new order now, with the line that says so; '' if it allows them."""
    policy_broken: bool = False
    """That policy cannot be read, or cannot be enforced there: its owner has to fix it."""
    network: NetworkReach = ""
    """What its commands can reach now: `none`, `hosts` (only those its owner lists), `public` or `host` (all that its
    machine reaches)."""
    open_network: str = ""
    """Why its commands use the machine's own network although its default policy allows less; '' if they do not."""
    hours_left_s: Seconds | None = None
    """Seconds until the hours end in which its owner allows new orders. None: it has no such hours."""
    policy_age_s: float | None = None
    """Seconds since that policy changed: older refusals may be asked again."""
    stream_full: bool = False
    """Its stream holds as much as it may: it keeps its events until the control plane has read what is there."""
    leaving: bool = False
    """It drains because its process was asked to stop, which it does when the current runs have ended."""
    stopping: bool = False
    """The last beat of a clean stop."""
    machine: MachineUse | None = None
    runs: tuple[RunBeat, ...] = Field((), max_length=MAX_RUNS)
    done: tuple[str, ...] = ()
    """Ids of control messages that were handled and may be removed from the inbox."""
    abilities: tuple[str, ...] = ()
    """ABILITIES of the drone; unknown values are ignored."""
    name: NameOrNone = ""
    """The name by which its worker is named in this boot."""


class Hello(Wire):
    """Sent on start through the stream: every run on disk, so that runs that are not alive are known to be lost."""

    drone_id: str
    machine_id: MachineId
    boot_id: BootId
    at: datetime
    version: Version
    sandbox: SandboxKind
    concurrency: Slots
    labels: dict[str, str] = Field(default_factory=dict)
    runs: tuple[RunBeat, ...] = Field((), max_length=MAX_RUNS)
    abilities: tuple[str, ...] = ()
    """As in `Beat`: waiting orders may arrive before the first beat."""
