"""What a drone reports: the events of a run, its heartbeat, its hello, and text in flight.

An event is journalled on the drone before it is acted on, then sent. `(run_id, seq)` names it for ever; seq starts at 1
and has no holes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from shared.messages import ToolCall
from shared.wire import Wire

ABILITIES = ("resume", "teams")
"""What a drone of this version says of itself. `resume`: it goes on from a checkpoint, where an order has `resumed`.
`teams`: it runs agents on tasks, and does services: every order whose purpose is not `work`."""


class Usage(Wire):
    """Tokens and money of one model call. `cost_usd` None: the price is unknown, which is never the same as 0."""

    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None


class Stats(Wire):
    """Totals of a run."""

    tool_calls: int = 0
    input_tokens: int = 0
    thinking_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    """None once any call had an unknown price."""
    duration_ms: int = 0


class Spent(Wire):
    """What an order's limits have been charged with so far, over all runs of one path."""

    iterations: int = 0
    """Answers of the model."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    """The part that is known."""
    seconds: float = 0.0


class Receipt(Wire):
    """What was found when a run was ended: processes seen, ended by us, and still there."""

    found: int = 0
    ended: int = 0
    survivors: int = 0
    at: datetime
    unreachable_since: datetime | None = None


# --- bodies: lifecycle ---------------------------------------------------------


class RunStarted(Wire):
    """First event of every run: it was claimed and has a process."""

    kind: Literal["run_started"] = "run_started"
    boot_id: str
    sandbox: str


class Phase(Wire):
    """What the run does now, for people: preparing, setup, working, delivering."""

    kind: Literal["phase"] = "phase"
    name: str
    detail: str = ""


class Prepared(Wire):
    """The workspace is there."""

    kind: Literal["prepared"] = "prepared"
    base_commit: str | None = None
    """None in an empty repository."""
    default_branch: str | None = None
    workspace: str = ""
    """The directory that the agent works in, on the drone; empty where an older drone wrote this."""


class Delivered(Wire):
    """What the run leaves behind. Blobs were stored before this event was written."""

    kind: Literal["delivered"] = "delivered"
    branch: str | None = None
    """None if nothing changed."""
    base_commit: str | None = None
    head_commit: str | None = None
    pushed: bool = False
    push_error: str | None = None
    patch_sha256: str | None = None
    patch_bytes: int = 0
    bundle_sha256: str | None = None
    files_changed: int = 0
    late_ref: str | None = None


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
    """The order did not end: the drone hands it back to the queue."""
    order_at_fault: bool = True
    """With status failed: running it again would end the same way."""
    verification: str = ""
    """A `shared.outcome.Verification`; empty from a drone that does not say."""


# --- bodies: steps ---------------------------------------------------------------


class ReasoningStep(Wire):
    """What the model thought before its next message, which is the step that follows."""

    kind: Literal["reasoning"] = "reasoning"
    text: str
    blocks: tuple[dict[str, Any], ...] = ()
    """As `Message.thinking_blocks`."""


class AssistantStep(Wire):
    """A whole assistant message, after its stream ended."""

    kind: Literal["assistant"] = "assistant"
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    model: str = ""
    finish_reason: str = ""
    duration_ms: int = 0


class UserStep(Wire):
    """A message that entered the transcript on behalf of people or of the loop itself."""

    kind: Literal["user"] = "user"
    text: str
    source: Literal["prompt", "steer", "follow_up", "loop"] = "loop"


class ToolCallStep(Wire):
    kind: Literal["tool_call"] = "tool_call"
    call_id: str
    tool: str
    arguments: Any = None
    """Parsed, or the model's own text where it is not JSON."""


Execution = Literal["", "answered", "submitted", "timed_out", "broken_off", "held_back"]
"""What became of a call. `answered`: its tool, or the check of its arguments, gave the result. `submitted`: it declared
the work done. `timed_out`: its time limit ended it. `broken_off`: the run ended it before its time. `held_back`: it was
never executed. Empty: an older drone wrote this."""


class ToolResultStep(Wire):
    kind: Literal["tool_result"] = "tool_result"
    call_id: str
    output: str
    execution: Execution = ""
    note: str = ""
    """What the fleet added for the model: how the call ended, a guardrail's warning. `output` ends with it."""
    return_code: int | None = None
    is_error: bool = False
    duration_ms: int = 0
    output_bytes: int = 0
    """Of the whole output; `output` is what the model was shown."""
    log_sha256: str | None = None
    """Blob with the full output, where it was longer than what was shown."""


class CommentStep(Wire):
    kind: Literal["comment"] = "comment"
    text: str
    to_task: bool = False
    """The agent wrote it into its task's thread; others are remarks on the run itself."""


class RetryStep(Wire):
    """A model call failed and is repeated after `delay_s`."""

    kind: Literal["retry"] = "retry"
    attempt: int
    delay_s: float
    error_class: str
    error: str


class CompactionStep(Wire):
    """From here on `summary` stands for all earlier messages but the last `kept`; those themselves stay stored."""

    kind: Literal["compaction"] = "compaction"
    summary: str
    tokens_before: int = 0
    tokens_after: int = 0
    kept: int = 0
    """Messages at the end of the transcript that stayed word for word."""
    cause: Literal["window", "overflow", "asked"] = "window"
    """The window was nearly full, the endpoint said that it is full, or somebody asked for it."""
    files_read: tuple[str, ...] = ()
    files_changed: tuple[str, ...] = ()


class GuardrailStep(Wire):
    """A guardrail had something to say about a call."""

    kind: Literal["guardrail"] = "guardrail"
    call_id: str
    guardrail: str
    action: Literal["warn", "block", "halt"]
    code: str = ""
    reason: str = ""


class ApprovalStep(Wire):
    """A call waits for a person's word; the order is `awaiting_approval` until the decision."""

    kind: Literal["approval"] = "approval"
    call_id: str
    tool: str
    why: str
    until: datetime | None = None
    """Then it counts as denied."""


class DecisionStep(Wire):
    """A waiting call was decided: by a person, or by the clock."""

    kind: Literal["decision"] = "decision"
    call_id: str
    approved: bool
    by: Literal["person", "clock", "interruption"] = "person"
    comment: str = ""


class TodoItem(Wire):
    text: str
    status: Literal["pending", "in_progress", "done"] = "pending"


class TodoStep(Wire):
    """The model's list of what is left to do, whole each time; the last one counts."""

    kind: Literal["todo"] = "todo"
    items: tuple[TodoItem, ...] = ()


class VerifyStep(Wire):
    """One of the project's `verify` commands was run."""

    kind: Literal["verify"] = "verify"
    attempt: int
    """From 1; every failure that goes back to the model begins another."""
    command: str
    passed: bool
    return_code: int | None = None
    output: str = ""
    duration_ms: int = 0


class ChildStep(Wire):
    """A step of a child agent, which the call `call_id` started; `step` is the step's body."""

    kind: Literal["child"] = "child"
    call_id: str
    step: dict[str, Any]


class CheckpointStep(Wire):
    """A step of the loop is complete, and this is the workspace after it: where a later run can go on."""

    kind: Literal["checkpoint"] = "checkpoint"
    commit: str = ""
    """Its tree is the workspace; empty while nothing differs from the base."""
    head: str = ""
    """The agent's own last commit; empty while that is the base."""
    changed: bool = True
    """Whether this step changed anything."""
    bundle_sha256: str | None = None
    """Blob with the commit, which other drones go on from; None: there is nothing to store, or it could not be."""
    bundle_bytes: int = 0
    left_out: tuple[str, ...] = ()
    """Files that are not in it, each with the reason: they hold a known secret, or are too large."""
    spent: Spent = Spent()


class ResumedStep(Wire):
    """This run goes on from a checkpoint of an earlier one; what came after it there left the path."""

    kind: Literal["resumed"] = "resumed"
    run_id: str
    seq: int
    """The seq of the checkpoint in that run."""
    commit: str = ""
    cut_off: bool = False
    """A step had begun, and was undone inside the workspace."""
    in_place: bool = False
    """On the same drone, in the workspace that the earlier run had left."""
    left_out: tuple[str, ...] = ()
    why: str = ""
    """One sentence: what ended the earlier run."""


class PullRequestStep(Wire):
    """What became of a pull request that was asked for."""

    kind: Literal["pull_request"] = "pull_request"
    state: Literal["opened", "updated", "ready", "failed"]
    """ready: it could not be opened from here, and title and body are made up for a person to do so."""
    url: str | None = None
    number: int | None = None
    via: str = ""
    """`gh`, `glab`, `tea`, or the host's HTTP interface."""
    head: str = ""
    base: str | None = None
    title: str = ""
    body: str = ""
    why: str = ""
    """One sentence, where it was not opened."""


class ErrorStep(Wire):
    """Something failed inside the run. `what` is for people, `detail` is all that is known (S-084)."""

    kind: Literal["error"] = "error"
    what: str
    detail: str = ""
    code: str = ""


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
    | UserStep
    | ToolCallStep
    | ToolResultStep
    | CommentStep
    | RetryStep
    | CompactionStep
    | GuardrailStep
    | ApprovalStep
    | DecisionStep
    | TodoStep
    | VerifyStep
    | ChildStep
    | CheckpointStep
    | ResumedStep
    | PullRequestStep
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
    seq: int = Field(ge=1)
    at: datetime
    """The drone's clock; the control plane stores its own beside it."""
    body: Body


class Delta(Wire):
    """Text in flight: shown live, never stored; the whole message follows as a step."""

    run_id: str
    order_id: str
    kind: Literal["text", "thinking", "tool_call", "output"]
    """`output`: what a running command prints."""
    text: str
    after_seq: int = 0
    """The last event that the run had recorded by then: whoever shows this shows that event first."""


class RunBeat(Wire):
    """What one run in hand is doing."""

    run_id: str
    order_id: str
    generation: int
    doing: str = ""
    since: datetime | None = None
    progress_at: datetime | None = None
    doing_seconds: float = 0.0
    """How long it has been doing that, when the beat left: clocks may be apart, durations are not."""
    quiet_seconds: float = 0.0
    """How long nothing has come of it: no event, no text, no output."""
    waits_for: Literal["", "person", "provider"] = ""
    """Being quiet is as it should be: a person is asked, or the provider said how long to wait."""
    last_seq: int = 0
    ended: bool = False
    """Stays in the beat until the control plane confirmed the last seq."""


class Beat(Wire):
    """Sent every 5 s."""

    drone_id: str
    machine_id: str
    boot_id: str
    sent_at: datetime
    version: str
    sandbox: str
    concurrency: int
    warm: bool = False
    draining: bool = False
    full: str = ""
    """Where the drone's disks have too little room for another order (`80 MB free in /path`); '' while they have."""
    leaving: bool = False
    """It drains because its process was told to stop, which it does when the runs in hand have ended."""
    stopping: bool = False
    """The last beat of a clean stop."""
    runs: tuple[RunBeat, ...] = ()
    done: tuple[str, ...] = ()
    """Ids of control messages that were acted on and may leave the inbox."""
    abilities: tuple[str, ...] = ()
    """What this drone can do beyond the first version, of ABILITIES; words that are not known mean nothing."""


class Hello(Wire):
    """Sent on start through the stream: every run on disk, so that what is not alive is known to be lost."""

    drone_id: str
    machine_id: str
    boot_id: str
    at: datetime
    version: str
    sandbox: str
    concurrency: int
    labels: dict[str, str] = Field(default_factory=dict)
    runs: tuple[RunBeat, ...] = ()
    abilities: tuple[str, ...] = ()
    """As in `Beat`: the first beat may come after orders that were waiting."""
