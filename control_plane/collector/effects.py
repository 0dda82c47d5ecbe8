"""The effects of an event on its run and order, in the transaction that stores it.

Only the current run moves its order. Events of a late run are stored with that run, its cost counts, and the order
names its work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order
from control_plane.db.projects import Project
from control_plane.db.runs import Run
from control_plane.db.types import without_nul
from control_plane.drones.inbox import notify_drone
from control_plane.money.spending.settlement import spending_heard
from control_plane.orders.conversations.entries import asked_meanwhile, compacted
from control_plane.orders.conversations.left_branches import summarized
from control_plane.orders.conversations.review_answers import fill_in_commit, note_answer, reopen_undone
from control_plane.orders.conversations.steering_messages import (
    note_taken_back,
    send_missing_steering,
    undelivered_steering,
)
from control_plane.orders.ending import (
    Ending,
    after_all_drones,
    canceled,
    finish,
    requeue,
    try_again,
    try_elsewhere,
)
from control_plane.orders.memory_notes import propose
from control_plane.orders.races import note_base
from control_plane.orders.run_ends import RunEnding, close_run
from control_plane.orders.scores import average
from control_plane.orders.status_changes import explain, move_order
from control_plane.orders.waits import close_decided, open_wait, open_waits, reason
from control_plane.services import checks, pull_requests
from control_plane.teams.thread import agent_wrote
from shared.control import Confirm
from shared.events import (
    MAX_COUNT,
    MAX_DOLLARS,
    ApprovalStep,
    AssistantStep,
    ChargeStep,
    ChildStep,
    CommentStep,
    CompactionStep,
    DecisionStep,
    Delivered,
    Event,
    Phase,
    Prepared,
    ProjectCheckStep,
    ProviderCheckStep,
    PullRequestStep,
    Receipt,
    RememberStep,
    ResumedStep,
    ReviewAnswerStep,
    ReviewerStep,
    RunEnded,
    RunStarted,
    ToolCallStep,
    Usage,
    UserStep,
)
from shared.outcome import ExitStatus
from shared.reasons import Answered, CanceledEnd, GivenBack, OrderFacts, RunEnd
from shared.states import OrderStatus, RunStatus
from shared.work_order import CHECKS


@dataclass
class EventContext:
    """An event and the rows it affects."""

    db: Session
    core: Core
    drone: Drone
    dispatch: Dispatch
    order: Order
    run: Run
    event: Event
    late: bool
    order_changed: bool = False
    """The order's status or result changed, or something beside it that lists show: a wait, a comment."""
    also_changed: str | None = None
    """Another order whose followers have to be notified."""
    drone_notified: bool = False
    """The event wrote a message for the drone."""


def apply(context: EventContext) -> None:
    """Apply the effect of this kind of event; most kinds have none and are only stored."""
    effect = _EFFECTS.get(type(context.event.body))
    if effect is not None:
        effect(context, context.event.body)


def _run_started(context: EventContext, body: RunStarted) -> None:
    context.run.boot_id = body.boot_id
    context.run.sandbox = body.sandbox
    now = context.core.clock.now()
    context.dispatch.claimed_at = context.dispatch.claimed_at or now
    # An order that is being canceled keeps its status: its run will receive the cancel.
    if not context.late and context.order.status == OrderStatus.ASSIGNED:
        order = context.order
        running = _without_wait(order)
        move_order(context.db, order, OrderStatus.RUNNING, running, started_at=order.started_at or now)
        context.order_changed = True
        context.drone_notified = send_missing_steering(context.db, context.core, order)
        if wanted := asked_meanwhile(context.db, order, context.dispatch.published_at):
            notify_drone(context.db, context.core, context.drone.id, wanted, context.run.id)
            context.drone_notified = True


def _compaction(context: EventContext, body: CompactionStep) -> None:
    if not context.late:
        compacted(context.db, context.order, body)


def _phase(context: EventContext, body: Phase) -> None:
    context.run.doing = without_nul(body.detail or body.name)
    context.run.doing_since = context.run.progress_at = context.core.clock.now()
    context.run.waits_for = ""


def _prepared(context: EventContext, body: Prepared) -> None:
    if context.late:
        return
    context.order.base_commit = body.base_commit
    if body.cloned_s is not None:
        project = context.db.get_one(Project, context.order.project_id)
        project.clone_s = average(project.clone_s, body.cloned_s)
    # The others of a race wait for it.
    context.order_changed = note_base(context.db, context.order, body.base_commit) or context.order_changed


def _resumed(context: EventContext, body: ResumedStep) -> None:
    """Record the earlier run that this one continues. Claims about runs of other orders are ignored."""
    before = context.db.get(Run, body.run_id)
    if before is not None and before.order_id == context.order.id and before.generation < context.run.generation:
        context.run.resumed_run_id = before.id
        context.run.resumed_seq = body.seq
        if not context.late:
            context.db.flush()
            reopen_undone(context.db, context.order, context.run)


def _assistant(context: EventContext, body: AssistantStep) -> None:
    _charge(context.run, body.usage)


def _charged(context: EventContext, body: ChargeStep) -> None:
    _charge(context.run, body.usage)


def _reviewer(context: EventContext, body: ReviewerStep) -> None:
    _charge(context.run, body.usage)


def _tool_call(context: EventContext, _: ToolCallStep) -> None:
    context.run.tool_calls += 1


def _child(context: EventContext, body: ChildStep) -> None:
    """A child agent's usage and tool calls count for its parent; its other steps are only shown."""
    if body.step.get("kind") == "tool_call":
        context.run.tool_calls += 1
    if (usage := body.usage) is not None:
        _charge(context.run, usage)


def _charge(run: Run, usage: Usage) -> None:
    run.input_tokens = min(run.input_tokens + usage.input_tokens, MAX_COUNT)
    run.output_tokens = min(run.output_tokens + usage.output_tokens, MAX_COUNT)
    run.thinking_tokens = min(run.thinking_tokens + usage.thinking_tokens, MAX_COUNT)
    run.cached_tokens = min(run.cached_tokens + usage.cached_tokens, MAX_COUNT)
    run.cost_usd = _sum(run.cost_usd, usage.cost_usd)
    if run.status == RunStatus.LOST:
        spending_heard(run, usage.cost_usd)


def _approval(context: EventContext, body: ApprovalStep) -> None:
    if context.late:
        return
    wait = open_wait(context.db, context.core, context.run, body, context.event.at)
    # An order that is being canceled keeps its status: its run will receive the cancel and ask no more.
    begins_to_wait = context.order.status == OrderStatus.RUNNING
    context.order_changed = True
    if begins_to_wait:
        waiting = OrderFacts(placed=context.order.facts.placed, waits=reason(wait))
        move_order(context.db, context.order, OrderStatus.AWAITING_APPROVAL, waiting)
    if wait.answered_at is not None:
        # A person has decided about this before: it is not asked for twice.
        context.drone_notified = True
        return
    if begins_to_wait:
        for subscriber in context.core.subscribers.order_waits_for_person:
            subscriber(context.db, context.core, context.order, body.tool)
    if context.order.status == OrderStatus.AWAITING_APPROVAL:
        for told in context.core.subscribers.wait_opened:
            told(context.db, context.core, context.order, wait)


def _comment(context: EventContext, body: CommentStep) -> None:
    """Add a comment by the current run of a task's agent to the thread; a late run's comment is not added.

    What a run took back stays taken back, also if it is late.
    """
    if body.left_leaf and not context.late:
        summarized(context.db, context.core, context.order, body)
    if body.taken_back:
        note_taken_back(context.db, context.core, context.order, body.taken_back)
    if body.to_task and not context.late and context.order.task_id is not None:
        agent_wrote(context.db, context.core, context.order, context.run, without_nul(body.text))
        context.order_changed = True


def _review_answer(context: EventContext, body: ReviewAnswerStep) -> None:
    if not context.late:
        note_answer(context.db, context.core, context.order, (context.run, context.event.seq), body)


def _remember(context: EventContext, body: RememberStep) -> None:
    if not context.late and propose(context.db, context.core, context.order, body):
        context.order_changed = True


def _user(context: EventContext, body: UserStep) -> None:
    """A run that begins again undoes what earlier runs of the order answered."""
    if body.source == "prompt" and not context.late and context.order.attempt > 1:
        reopen_undone(context.db, context.order, context.run)


def _pull_request(context: EventContext, body: PullRequestStep) -> None:
    if not context.late and context.order.purpose == "pull_request":
        context.also_changed = pull_requests.noted(context.db, context.order, body)


def _checked(context: EventContext, body: ProviderCheckStep | ProjectCheckStep) -> None:
    if not context.late and context.order.purpose in CHECKS:
        checks.noted(context.db, context.core, context.order, context.drone, body)


def _decision(context: EventContext, body: DecisionStep) -> None:
    close_decided(context.db, context.core, context.run.id, body)
    if context.late or context.order.status != OrderStatus.AWAITING_APPROVAL:
        return
    order, before = context.order, context.order.facts
    context.order_changed = True
    if left := open_waits(context.db, [context.run.id])[context.run.id]:
        explain(context.db, order, before.model_copy(update={"waits": reason(left[0])}))
    else:
        # Until the next heartbeat says what it does now.
        context.run.doing = context.run.waits_for = ""
        answered = Answered(about=body.about, by=body.by, approved=body.approved)
        move_order(context.db, order, OrderStatus.RUNNING, before.model_copy(update={"waits": answered}))


def _without_wait(order: Order) -> OrderFacts:
    return order.facts.model_copy(update={"waits": None})


def _delivered(context: EventContext, body: Delivered) -> None:
    order = context.order
    context.order_changed = True
    if body.late_ref is not None:
        order.late_refs = [*(ref for ref in order.late_refs if ref != body.late_ref), body.late_ref]
    if context.late:
        return
    order.branch = body.branch
    order.base_commit = body.base_commit
    order.head_commit = body.head_commit
    order.pushed = body.pushed
    order.push_error = without_nul(body.push_error) if body.push_error else None
    order.left_out = without_nul(body.left_out)
    order.patch_sha256 = body.patch_sha256
    order.patch_bytes = body.patch_bytes
    order.branch_patch_sha256 = body.branch_patch_sha256
    order.files_changed = body.files_changed
    order.lines_added, order.lines_removed = body.lines_added, body.lines_removed
    order.bundle_sha256 = body.bundle_sha256
    order.result_run_id = context.run.id
    fill_in_commit(context.db, order, body.head_commit or body.base_commit)


def _run_ended(context: EventContext, body: RunEnded) -> None:
    """End the run and its order, unless the order is queued again."""
    _close_run(context, body)
    if context.late:
        _late_receipt(context, body)
    else:
        _end_order(context, body)
        _note_duration(context, body)
    context.order_changed = True
    if context.order.purpose == "push":
        context.also_changed = (context.order.asked or {}).get("order")
    # Every earlier event is stored, as this event was the run's next.
    confirmation = Confirm(run_id=context.run.id, last_seq=context.event.seq)
    notify_drone(context.db, context.core, context.drone.id, confirmation, context.run.id)
    context.drone_notified = True


def _note_duration(context: EventContext, body: RunEnded) -> None:
    if body.status == "success" and context.order.purpose == "work":
        project = context.db.get_one(Project, context.order.project_id)
        project.run_s = average(project.run_s, body.stats.duration_ms / 1000)


def _close_run(context: EventContext, body: RunEnded) -> None:
    run, stats = context.run, body.stats
    # A run that crashed may not know its usage; the stored steps do.
    run.tool_calls = max(run.tool_calls, stats.tool_calls)
    run.input_tokens = max(run.input_tokens, stats.input_tokens)
    run.output_tokens = max(run.output_tokens, stats.output_tokens)
    run.thinking_tokens = max(run.thinking_tokens, stats.thinking_tokens)
    run.cached_tokens = max(run.cached_tokens, stats.cached_tokens)
    known = run.cost_usd is not None and stats.cost_usd is not None
    run.cost_usd = max(run.cost_usd or 0.0, stats.cost_usd or 0.0) if known else None
    run.duration_ms = stats.duration_ms
    run.doing = run.waits_for = ""
    run.unsuitable = body.unsuitable and body.status == "failed"
    suspended = _is_suspended(context, body)
    ending = RunEnding(RunStatus(body.status), body.exit_status, without_nul(body.reason), suspended)
    close_run(context.db, context.core, context.dispatch, ending)


def _is_suspended(context: EventContext, body: RunEnded) -> bool:
    """Whether the order keeps waiting, without a run."""
    waits = body.suspended and not context.late and context.order.status == OrderStatus.AWAITING_APPROVAL
    return waits and bool(open_waits(context.db, [context.run.id])[context.run.id])


def _end_order(context: EventContext, body: RunEnded) -> None:
    db, core, order = context.db, context.core, context.order
    detail = without_nul(body.reason)
    ending = Ending(body.exit_status, RunEnd(detail=detail), without_nul(body.response) or None)
    if order.status == OrderStatus.CANCELING:
        _end_canceled(context, body)
    elif _is_suspended(context, body):
        order.drone_id = order.grant_until = None
    elif body.give_back or body.status == "preempted":
        _give_back(context, body, ending)
    elif body.status == "success":
        _finish(context, body, OrderStatus.SUCCEEDED, ending)
    elif body.order_at_fault and body.unsuitable:
        if not try_elsewhere(db, core, order, context.drone, ending):
            _finish(context, body, OrderStatus.FAILED, after_all_drones(db, order, ending))
    elif body.order_at_fault:
        _finish(context, body, OrderStatus.FAILED, ending)
    else:
        try_again(db, core, order, ending)


def _give_back(context: EventContext, body: RunEnded, ending: Ending) -> None:
    """Requeue an order that its drone returns. A title is not worth a second model call: its order fails."""
    if context.order.purpose == "title":
        _finish(context, body, OrderStatus.FAILED, ending)
    else:
        returned = GivenBack(drone=context.drone.name, detail=without_nul(body.reason))
        requeue(context.db, context.core, context.order, returned)


def _finish(context: EventContext, body: RunEnded, to: OrderStatus, ending: Ending) -> None:
    order = context.order
    order.verification = body.verification or None
    if left := len(undelivered_steering(context.db, order)):
        # A steering message that no run received is never lost silently.
        because = ending.because.model_copy(update={"unheard": left, "session": order.session_id})
        ending = replace(ending, because=because)
    finish(context.db, context.core, order, to, ending)


def _end_canceled(context: EventContext, body: RunEnded) -> None:
    receipt = body.receipt or Receipt(at=context.core.clock.now())
    detail = without_nul(body.reason)
    if body.exit_status == ExitStatus.LOST:
        ended = CanceledEnd(code="with_loss", detail=detail)
    elif body.status == "preempted":
        ended = CanceledEnd(code="with_receipt")
    else:
        # Its run ended before it received the cancel; its work is kept anyway.
        ended = CanceledEnd(code="after_end", detail=detail)
    context.order.verification = body.verification or None
    ending = canceled(ended, receipt, without_nul(body.response) or None)
    finish(context.db, context.core, context.order, OrderStatus.CANCELED, ending)


def _late_receipt(context: EventContext, body: RunEnded) -> None:
    """Store the missing receipt from a drone that was unreachable when its order was canceled."""
    order = context.order
    missing = order.status == OrderStatus.CANCELED and (order.receipt or {}).get("unreachable_since")
    if missing and order.run_id == context.run.id and body.receipt is not None:
        order.receipt = body.receipt.model_dump(mode="json")


def _sum(one: float | None, other: float | None) -> float | None:
    """Bounded, as a drone may claim anything: the sum goes back to drones, which accept no more."""
    return None if one is None or other is None else min(one + other, MAX_DOLLARS)


_EFFECTS: Mapping[type[Any], Callable[[EventContext, Any], None]] = {
    RunStarted: _run_started,
    Phase: _phase,
    Prepared: _prepared,
    ResumedStep: _resumed,
    AssistantStep: _assistant,
    ChargeStep: _charged,
    ToolCallStep: _tool_call,
    CompactionStep: _compaction,
    ChildStep: _child,
    ApprovalStep: _approval,
    DecisionStep: _decision,
    CommentStep: _comment,
    ReviewAnswerStep: _review_answer,
    ReviewerStep: _reviewer,
    RememberStep: _remember,
    UserStep: _user,
    PullRequestStep: _pull_request,
    ProviderCheckStep: _checked,
    ProjectCheckStep: _checked,
    Delivered: _delivered,
    RunEnded: _run_ended,
}
