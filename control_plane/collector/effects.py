"""The effects of an event on its run and order, in the transaction that stores it.

Only the current run moves its order. Events of a late run are stored with that run, its cost counts, and the order
names its work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError
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
from control_plane.orders.waits import close_decided, decision_of, open_wait, open_waits, reason
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
class Scene:
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


def apply(scene: Scene) -> None:
    """Apply the effect of this kind of event; most kinds have none and are only stored."""
    effect = _EFFECTS.get(type(scene.event.body))
    if effect is not None:
        effect(scene, scene.event.body)


def _run_started(scene: Scene, body: RunStarted) -> None:
    scene.run.boot_id = body.boot_id
    scene.run.sandbox = body.sandbox
    now = scene.core.clock.now()
    scene.dispatch.claimed_at = scene.dispatch.claimed_at or now
    # An order that is being canceled keeps its status: its run will receive the cancel.
    if not scene.late and scene.order.status == OrderStatus.ASSIGNED:
        order = scene.order
        running = _without_wait(order)
        move_order(scene.db, order, OrderStatus.RUNNING, running, started_at=order.started_at or now)
        scene.order_changed = True
        scene.drone_notified = send_missing_steering(scene.db, scene.core, order)
        if wanted := asked_meanwhile(scene.db, order, scene.dispatch.published_at):
            notify_drone(scene.db, scene.core, scene.drone.id, wanted, scene.run.id)
            scene.drone_notified = True


def _compaction(scene: Scene, body: CompactionStep) -> None:
    if not scene.late:
        compacted(scene.db, scene.order, body)


def _phase(scene: Scene, body: Phase) -> None:
    scene.run.doing = without_nul(body.detail or body.name)
    scene.run.doing_since = scene.run.progress_at = scene.core.clock.now()
    scene.run.waits_for = ""


def _prepared(scene: Scene, body: Prepared) -> None:
    if scene.late:
        return
    scene.order.base_commit = body.base_commit
    if body.cloned_s is not None:
        project = scene.db.get_one(Project, scene.order.project_id)
        project.clone_s = average(project.clone_s, body.cloned_s)
    # The others of a race wait for it.
    scene.order_changed = note_base(scene.db, scene.order, body.base_commit) or scene.order_changed


def _resumed(scene: Scene, body: ResumedStep) -> None:
    """Record the earlier run that this one continues. Claims about runs of other orders are ignored."""
    before = scene.db.get(Run, body.run_id)
    if before is not None and before.order_id == scene.order.id and before.generation < scene.run.generation:
        scene.run.resumed_run_id = before.id
        scene.run.resumed_seq = body.seq
        if not scene.late:
            scene.db.flush()
            reopen_undone(scene.db, scene.order, scene.run)


def _assistant(scene: Scene, body: AssistantStep) -> None:
    _charge(scene.run, body.usage)


def _charged(scene: Scene, body: ChargeStep) -> None:
    _charge(scene.run, body.usage)


def _reviewer(scene: Scene, body: ReviewerStep) -> None:
    _charge(scene.run, body.usage)


def _tool_call(scene: Scene, _: ToolCallStep) -> None:
    scene.run.tool_calls += 1


def _child(scene: Scene, body: ChildStep) -> None:
    """A child agent's usage and tool calls count for its parent; its other steps are only shown."""
    kind = body.step.get("kind")
    if kind == "tool_call":
        scene.run.tool_calls += 1
    elif kind == "assistant":
        try:
            usage = AssistantStep.model_validate(body.step).usage
        except ValidationError:
            # It did spend something, but the amount is unknown.
            usage = Usage()
        _charge(scene.run, usage)


def _charge(run: Run, usage: Usage) -> None:
    run.input_tokens = min(run.input_tokens + usage.input_tokens, MAX_COUNT)
    run.output_tokens = min(run.output_tokens + usage.output_tokens, MAX_COUNT)
    run.thinking_tokens = min(run.thinking_tokens + usage.thinking_tokens, MAX_COUNT)
    run.cached_tokens = min(run.cached_tokens + usage.cached_tokens, MAX_COUNT)
    run.cost_usd = _sum(run.cost_usd, usage.cost_usd)
    if run.status == RunStatus.LOST:
        spending_heard(run, usage.cost_usd)


def _approval(scene: Scene, body: ApprovalStep) -> None:
    if scene.late:
        return
    wait = open_wait(scene.db, scene.core, scene.run, body)
    # An order that is being canceled keeps its status: its run will receive the cancel and ask no more.
    begins_to_wait = scene.order.status == OrderStatus.RUNNING
    scene.order_changed = True
    if begins_to_wait:
        waiting = OrderFacts(placed=scene.order.facts.placed, waits=reason(wait))
        move_order(scene.db, scene.order, OrderStatus.AWAITING_APPROVAL, waiting)
    if wait.answered_at is not None:
        # A person decided about this while no run waited for it: it is not asked for twice.
        notify_drone(scene.db, scene.core, scene.drone.id, decision_of(wait), scene.run.id)
        scene.drone_notified = True
        return
    if begins_to_wait:
        for subscriber in scene.core.subscribers.order_waits_for_person:
            subscriber(scene.db, scene.core, scene.order, body.tool)
    if scene.order.status == OrderStatus.AWAITING_APPROVAL:
        for told in scene.core.subscribers.wait_opened:
            told(scene.db, scene.core, scene.order, wait)


def _comment(scene: Scene, body: CommentStep) -> None:
    """Add a comment by the current run of a task's agent to the thread; a late run's comment is not added.

    What a run took back stays taken back, also if it is late.
    """
    if body.left_leaf and not scene.late:
        summarized(scene.db, scene.core, scene.order, body)
    if body.taken_back:
        note_taken_back(scene.db, scene.core, scene.order, body.taken_back)
    if body.to_task and not scene.late and scene.order.task_id is not None:
        agent_wrote(scene.db, scene.core, scene.order, scene.run, without_nul(body.text))
        scene.order_changed = True


def _review_answer(scene: Scene, body: ReviewAnswerStep) -> None:
    if not scene.late:
        note_answer(scene.db, scene.core, scene.order, (scene.run, scene.event.seq), body)


def _remember(scene: Scene, body: RememberStep) -> None:
    if not scene.late and propose(scene.db, scene.core, scene.order, body):
        scene.order_changed = True


def _user(scene: Scene, body: UserStep) -> None:
    """A run that begins again undoes what earlier runs of the order answered."""
    if body.source == "prompt" and not scene.late and scene.order.attempt > 1:
        reopen_undone(scene.db, scene.order, scene.run)


def _pull_request(scene: Scene, body: PullRequestStep) -> None:
    if not scene.late and scene.order.purpose == "pull_request":
        scene.also_changed = pull_requests.noted(scene.db, scene.order, body)


def _checked(scene: Scene, body: ProviderCheckStep | ProjectCheckStep) -> None:
    if not scene.late and scene.order.purpose in CHECKS:
        checks.noted(scene.db, scene.core, scene.order, scene.drone, body)


def _decision(scene: Scene, body: DecisionStep) -> None:
    close_decided(scene.db, scene.core, scene.run.id, body)
    if scene.late or scene.order.status != OrderStatus.AWAITING_APPROVAL:
        return
    order, before = scene.order, scene.order.facts
    scene.order_changed = True
    if left := open_waits(scene.db, [scene.run.id])[scene.run.id]:
        explain(scene.db, order, before.model_copy(update={"waits": reason(left[0])}))
    else:
        # Until the next heartbeat says what it does now.
        scene.run.doing = scene.run.waits_for = ""
        answered = Answered(about=body.about, by=body.by, approved=body.approved)
        move_order(scene.db, order, OrderStatus.RUNNING, before.model_copy(update={"waits": answered}))


def _without_wait(order: Order) -> OrderFacts:
    return order.facts.model_copy(update={"waits": None})


def _delivered(scene: Scene, body: Delivered) -> None:
    order = scene.order
    scene.order_changed = True
    if body.late_ref is not None:
        order.late_refs = [*(ref for ref in order.late_refs if ref != body.late_ref), body.late_ref]
    if scene.late:
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
    order.result_run_id = scene.run.id
    fill_in_commit(scene.db, order, body.head_commit or body.base_commit)


def _run_ended(scene: Scene, body: RunEnded) -> None:
    """End the run and its order, unless the order is queued again."""
    _close_run(scene, body)
    if scene.late:
        _late_receipt(scene, body)
    else:
        _end_order(scene, body)
        _note_duration(scene, body)
    scene.order_changed = True
    # Every earlier event is stored, as this event was the run's next.
    confirmation = Confirm(run_id=scene.run.id, last_seq=scene.event.seq)
    notify_drone(scene.db, scene.core, scene.drone.id, confirmation, scene.run.id)
    scene.drone_notified = True


def _note_duration(scene: Scene, body: RunEnded) -> None:
    if body.status == "success" and scene.order.purpose == "work":
        project = scene.db.get_one(Project, scene.order.project_id)
        project.run_s = average(project.run_s, body.stats.duration_ms / 1000)


def _close_run(scene: Scene, body: RunEnded) -> None:
    run, stats = scene.run, body.stats
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
    suspended = _is_suspended(scene, body)
    ending = RunEnding(RunStatus(body.status), body.exit_status, without_nul(body.reason), suspended)
    close_run(scene.db, scene.core, scene.dispatch, ending)


def _is_suspended(scene: Scene, body: RunEnded) -> bool:
    """Whether the order keeps waiting, without a run."""
    waits = body.suspended and not scene.late and scene.order.status == OrderStatus.AWAITING_APPROVAL
    return waits and bool(open_waits(scene.db, [scene.run.id])[scene.run.id])


def _end_order(scene: Scene, body: RunEnded) -> None:
    db, core, order = scene.db, scene.core, scene.order
    detail = without_nul(body.reason)
    ending = Ending(body.exit_status, RunEnd(detail=detail), without_nul(body.response) or None)
    if order.status == OrderStatus.CANCELING:
        _end_canceled(scene, body)
    elif _is_suspended(scene, body):
        order.drone_id = order.grant_until = None
    elif body.give_back or body.status == "preempted":
        _give_back(scene, body, ending)
    elif body.status == "success":
        _finish(scene, body, OrderStatus.SUCCEEDED, ending)
    elif body.order_at_fault and body.unsuitable:
        if not try_elsewhere(db, core, order, scene.drone, ending):
            _finish(scene, body, OrderStatus.FAILED, after_all_drones(db, order, ending))
    elif body.order_at_fault:
        _finish(scene, body, OrderStatus.FAILED, ending)
    else:
        try_again(db, core, order, ending)


def _give_back(scene: Scene, body: RunEnded, ending: Ending) -> None:
    """Requeue an order that its drone returns. A title is not worth a second model call: its order fails."""
    if scene.order.purpose == "title":
        _finish(scene, body, OrderStatus.FAILED, ending)
    else:
        returned = GivenBack(drone=scene.drone.name, detail=without_nul(body.reason))
        requeue(scene.db, scene.core, scene.order, returned)


def _finish(scene: Scene, body: RunEnded, to: OrderStatus, ending: Ending) -> None:
    order = scene.order
    order.verification = body.verification or None
    if left := len(undelivered_steering(scene.db, order)):
        # A steering message that no run received is never lost silently.
        because = ending.because.model_copy(update={"unheard": left, "session": order.session_id})
        ending = replace(ending, because=because)
    finish(scene.db, scene.core, order, to, ending)


def _end_canceled(scene: Scene, body: RunEnded) -> None:
    receipt = body.receipt or Receipt(at=scene.core.clock.now())
    detail = without_nul(body.reason)
    if body.exit_status == ExitStatus.LOST:
        ended = CanceledEnd(code="with_loss", detail=detail)
    elif body.status == "preempted":
        ended = CanceledEnd(code="with_receipt")
    else:
        # Its run ended before it received the cancel; its work is kept anyway.
        ended = CanceledEnd(code="after_end", detail=detail)
    scene.order.verification = body.verification or None
    ending = canceled(ended, receipt, without_nul(body.response) or None)
    finish(scene.db, scene.core, scene.order, OrderStatus.CANCELED, ending)


def _late_receipt(scene: Scene, body: RunEnded) -> None:
    """Store the missing receipt from a drone that was unreachable when its order was canceled."""
    order = scene.order
    missing = order.status == OrderStatus.CANCELED and (order.receipt or {}).get("unreachable_since")
    if missing and order.run_id == scene.run.id and body.receipt is not None:
        order.receipt = body.receipt.model_dump(mode="json")


def _sum(one: float | None, other: float | None) -> float | None:
    """Bounded, as a drone may claim anything: the sum goes back to drones, which accept no more."""
    return None if one is None or other is None else min(one + other, MAX_DOLLARS)


_EFFECTS: Mapping[type[Any], Callable[[Scene, Any], None]] = {
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
