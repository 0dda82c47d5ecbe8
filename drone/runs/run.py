"""One order to its last event: prepare, set up, loop, verify, deliver; and the error boundary around all of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from pydantic import TypeAdapter

from drone.agent.budget import RunBudget, recorded_apart
from drone.agent.plan_gate import NOT_PRESENTED
from drone.agent.question import Question
from drone.agent.recorded_transcript import Source
from drone.agent.values import Ruling
from drone.processes.receipt import Ended
from drone.runs.assembly import Assembled, assemble, spent_before
from drone.runs.blobs import HeldByAnother
from drone.runs.change_review import ChangeReview
from drone.runs.conclusion import SUSPENDED, RunConclusion, of_error, of_outcome, of_wish, step_of
from drone.runs.context import RunContext
from drone.runs.delivery import Pushing, SecretCheck, deliver, pushed
from drone.runs.reminders import judged
from drone.runs.stop_requests import Wish
from drone.runs.verification import SHOWN_OF_COMMAND, Verifier
from drone.sandbox import CommandResult, CommandSpec
from drone.services import serve
from drone.workspace import (
    BranchChange,
    Workspace,
    has_conflicts,
    marker_check,
    note_for_users,
    note_of_unfetched,
    refuse_rewritten,
)
from shared.errors import FleetFault, OrderError, Preempted, Suspended
from shared.events import (
    ApprovalStep,
    CommentStep,
    Delivered,
    Phase,
    Prepared,
    ResumedStep,
    RunEnded,
    RunStarted,
    Stats,
)
from shared.messages import Message
from shared.outcome import ExitStatus, Outcome, Verification
from shared.redaction import last_part
from shared.work_order import Resumed, WorkOrder

CHECKPOINT_SECONDS = 10.0
"""Time for the newest checkpoint to be sent, before a run that others may continue from reports its end."""
_HISTORY: TypeAdapter[list[Message]] = TypeAdapter(list[Message])


def execute(order: WorkOrder, context: RunContext) -> RunEnded:
    """Run `order` to its end and return its last event.

    Everything that happens is in the recorder's events, `run_started` first and `run_ended` last, even after an error:
    this is the error boundary of a run.
    """
    return _Run(order, context).to_its_end()


class _Run:
    """One active run, and its parts so far."""

    def __init__(self, order: WorkOrder, context: RunContext) -> None:
        self._order = order
        self._context = context
        self._record = context.recorder.record
        self._workspace: Workspace | None = None
        self._may_deliver = order.attempt == 1 and order.resumed is None
        """The workspace may replace what an earlier run of the order delivered: that is restored, or work has begun."""
        self._stats: Callable[[], Stats] = Stats
        """Returns what was spent so far."""
        self._verification = Verification.NOT_REACHED

    def to_its_end(self) -> RunEnded:
        self._record(RunStarted(boot_id=self._context.boot_id, sandbox=self._context.sandbox.kind))
        conclusion = self._judged(self._work, ends=True)
        # Before the delivery: no process that the agent left running may change the files while they are committed.
        ended = self._end_processes()
        if self._workspace is not None:
            # Else the delivery would replace the work of the earlier run with less, also on the remote.
            if self._may_deliver:
                conclusion = self._delivered(conclusion, self._workspace)
            # Before the last event: the session's next order may start as soon as that is known.
            self._workspace.close()
        if conclusion.status != "success" and self._context.checkpoint_store is not None:
            # Also before it: a run that continues the order looks for the checkpoint as soon as the event is known.
            self._context.checkpoint_store.settle(CHECKPOINT_SECONDS)
        self._name_what_came_too_late()
        asked_to_end = self._context.controls.wish is not None or conclusion.suspended
        end = RunEnded(
            status=conclusion.status,
            exit_status=conclusion.exit_status,
            reason=conclusion.reason,
            response=conclusion.response,
            stats=self._stats(),
            # Asked to end, perhaps only while it waited for a person at its delivery.
            receipt=ended.receipt(self._context.clock.now()) if asked_to_end else None,
            give_back=conclusion.give_back,
            order_at_fault=conclusion.order_at_fault,
            unsuitable=conclusion.unsuitable,
            verification=self._verification,
            suspended=conclusion.suspended,
        )
        self._record(end)
        return end

    def _judged(self, part: Callable[[], RunConclusion], *, ends: bool = False) -> RunConclusion:
        """Do a part of the run, and turn any exception into a conclusion. `ends`: which is then that of the run."""
        try:
            return part()
        except Suspended:
            return SUSPENDED
        except Preempted as signal:
            wish = self._context.controls.wish or Wish("stop", str(signal) or "the run was asked to end")
            return of_wish(wish)
        except Exception as error:  # noqa: BLE001 - the boundary of a run: recorded with all that is known, and judged by its class
            self._record(step_of(error).model_copy(update={"ended_run": ends}))
            return of_error(error)

    def _work(self) -> RunConclusion:
        order = self._order
        self._context.check_order(order)
        if order.purpose == "push":
            self._phase("working", "pushing stored work")
            return self._conclusion(_push_stored_work(order, self._context))
        if order.purpose != "work":
            return self._conclusion(self._service())
        self._phase("preparing")
        self._context.check_url(order.project.git_url)
        workspace = self._context.workspaces().prepare(
            order, self._context.store.get, self._check_git, self._accept_branch
        )
        self._workspace = workspace
        self._record(
            Prepared(
                base_commit=workspace.base_commit,
                default_branch=workspace.default_branch,
                workspace=str(workspace.path),
                cloned_s=workspace.mirror.cloned_s,
            )
        )
        change, merges = workspace.start.change, workspace.start.merges
        changed = change.for_users if change is not None else ""
        notes = (changed, note_for_users(merges), note_of_unfetched(workspace.session.submodules))
        for note in filter(None, notes if order.resumed is None else ()):
            self._record(CommentStep(text=note))
        if workspace.fresh:
            self._set_up(workspace)
        if order.resumed is not None:
            self._go_back(workspace, order.resumed)
        return self._loop(workspace)

    def _service(self) -> Outcome:
        """Do a small service, without a workspace."""
        self._phase("working", f"service: {self._order.purpose}")
        budget = RunBudget(self._order.limits, self._context.clock, spent_before(self._order))
        self._stats = budget.stats
        budget.on_apart = recorded_apart(self._record, "service")
        return serve(self._order, self._context, budget)

    def _conclusion(self, outcome: Outcome) -> RunConclusion:
        """How the run ended: the loop does not know why it was asked to stop."""
        wish = self._context.controls.wish
        if outcome.exit_status is ExitStatus.CANCELED and wish is not None:
            return of_wish(wish, outcome.response)
        return of_outcome(outcome)

    def _check_git(self) -> None:
        """Called while git fetches. That counts as progress: git ends automatically if no more data arrives."""
        self._context.controls.check_end()
        self._context.recorder.delta("output", "")

    def _go_back(self, workspace: Workspace, resumed: Resumed) -> None:
        """Restore the workspace to the earlier run's state. Raises FleetFault if the checkpoint is unavailable."""
        self._phase("preparing", "restoring the checkpoint")
        workspace.go_back(resumed, self._context.store.get)
        self._may_deliver = True
        kept_on_disk = resumed.kept_on_disk if workspace.fresh else ()
        self._record(
            ResumedStep(
                run_id=resumed.run_id,
                seq=resumed.seq,
                commit=resumed.commit,
                cut_off=resumed.cut_off,
                in_place=not workspace.fresh,
                left_out=(*resumed.left_out, *kept_on_disk),
                why=resumed.why,
            )
        )

    def _loop(self, workspace: Workspace) -> RunConclusion:
        """Run the agent to its end, and tell its extensions how it ended."""
        self._phase("working")
        with ExitStack() as stack:
            assembled = assemble(self._order, workspace, self._context, stack)
            self._stats = assembled.agent.stats
            self._may_deliver = True
            ended = self._judged(lambda: self._conclusion(self._agents_work(assembled, workspace)), ends=True)
            # Only now: verification and reminders continue the run, and an error or a cancel ends it as well.
            assembled.agent.end(Outcome(ended.exit_status, ended.reason, ended.response))
            return ended

    def _agents_work(self, assembled: Assembled, workspace: Workspace) -> Outcome:
        """Run the agent, and verify its work with the project's commands."""
        order, context, agent = self._order, self._context, assembled.agent
        source: Source = "prompt" if order.resumed is None else "loop"
        opening = (assembled.system, self._history(), assembled.prompt, source)
        if order.merge_only and order.resumed is None and not has_conflicts(workspace.start.merges):
            agent.begin(*opening)
            outcome = Outcome(ExitStatus.STOPPED, "The work is up to date without conflicts; the model was not asked.")
            if agent.take_up_messages():
                outcome = agent.go_on()
        else:
            outcome = agent.run(*opening, resumes=order.resumed is not None)
        plans = assembled.plan is not None and assembled.plan.progress.state == "planning"
        if plans and outcome.succeeded and assembled.budget.may_answer:
            outcome = agent.go_on(NOT_PRESENTED)
        # Before the project's commands: they check what the agent makes of the remarks.
        outcome = ChangeReview(order, context, workspace, assembled.budget).judge(outcome, agent)
        run, own_check = partial(self._command, workspace), marker_check(workspace.start.merges)
        verifier = Verifier(order, context.recorder, run, context.clock, own_check)
        outcome, self._verification = judged(outcome, agent, verifier, assembled.nudge)
        return outcome

    def _history(self) -> tuple[Message, ...]:
        """The session so far: in the order, or in a blob if it is long."""
        blob = self._order.context_blob
        if blob is None:
            return self._order.context
        return tuple(_HISTORY.validate_json(self._context.store.get(self._order.run_id, blob)))

    def _set_up(self, workspace: Workspace) -> None:
        """Run the project's `setup` commands, one after the other.

        Raises OrderError if one fails, FleetFault if its sandbox ended meanwhile.
        """
        for command in self._order.project.setup:
            result = self._command(workspace, "setup", command)
            why = last_part(result.output, SHOWN_OF_COMMAND)
            if result.lost:
                raise FleetFault(f"The project's command `{command}` {result.how_it_ended}", code="E-SETUP", why=why)
            if result.return_code != 0:
                raise OrderError(f"The project's command `{command}` {result.how_it_ended}", code="E-SETUP", why=why)

    def _command(self, workspace: Workspace, phase: str, command: str) -> CommandResult:
        """Run a command of the project in the workspace's sandbox."""
        self._phase(phase, command)
        return workspace.sandbox.run(
            CommandSpec(
                command,
                workspace=workspace.path,
                timeout=self._order.limits.max_run_seconds,
                on_output=lambda text: self._context.recorder.delta("output", text),
                check=self._context.controls.check_end,
            )
        )

    def _delivered(self, conclusion: RunConclusion, workspace: Workspace) -> RunConclusion:
        """Store and push the work, for any conclusion; a run that was asked to end keeps its work unpushed.

        If another run holds the order, the work is pushed under a separate name.
        """

        def part() -> RunConclusion:
            self._phase("delivering")
            context = self._context
            pushing = self._pushing(conclusion)
            delivered, remarks = deliver(self._order, workspace, context.store, pushing, self._check(conclusion))
            for remark in remarks:
                self._record(CommentStep(text=remark))
            self._record(delivered)
            return conclusion

        judged = self._judged(part)
        # A delivery error fails a successful run, whose answer is kept; a failure stays as it is.
        return replace(judged, response=conclusion.response) if conclusion.status == "success" else conclusion

    def _check(self, conclusion: RunConclusion) -> SecretCheck | None:
        if self._context.secrets is None:
            return None
        return SecretCheck(self._context.secrets, self._ask if conclusion.status == "success" else None)

    def _ask(self, places: str) -> Ruling:
        """Ask whether the work may be delivered with the secrets in these places. Raises Preempted."""
        # The wait for a person is no work of the run's.
        spent = self._stats()
        self._stats = lambda: spent
        context, limits = self._context, self._order.limits
        step = ApprovalStep(
            about="secret", call_id="delivery", tool="delivery", why=f"the work contains a secret, found in {places}"
        )
        question = Question(step, context.recorder, context.clock, limits.approval_timeout)
        return question.ask(context.controls.ruling, context.controls.check_end)

    def _accept_branch(self, change: BranchChange) -> None:
        """Ask whether to continue from a branch that was rewritten. Raises OrderError if not, and Preempted."""
        why = f"{change.why}. Approve to continue from the branch as it is now; deny to stop, so that nothing is lost"
        step = ApprovalStep(about="branch", call_id="branch", tool="branch", why=why)
        question = Question(step, self._context.recorder, self._context.clock, self._order.limits.approval_timeout)
        answer = question.ask(self._context.controls.ruling, self._context.controls.check_end)
        if not answer.approved:
            comment = f": {answer.comment}" if answer.comment else ""
            refuse_rewritten(change, f"; continuing from it was denied{comment}")

    def _pushing(self, conclusion: RunConclusion) -> Pushing | None:
        pushing, wish = self._context.pushing, self._context.controls.wish
        if pushing is not None and wish is not None and wish.kind == "stale":
            return replace(pushing, pushes=HeldByAnother())
        if pushing is None or conclusion.status == "preempted":
            return None
        return replace(pushing, verification=self._verification)

    def _end_processes(self) -> Ended:
        """End the run's processes."""
        if self._workspace is not None:
            self._workspace.rest()
        rest = self._context.end_processes()
        # Processes that survived their command are below us, and so among the rest.
        return self._context.sandbox.tally.counts.then(rest)

    def _name_what_came_too_late(self) -> None:
        """Record the user messages that came too late, so that none is lost silently."""
        controls = self._context.controls
        for message in controls.left_over():
            self._record(CommentStep(text=f"Received too late for this run: {message.text}"))

    def _phase(self, name: str, detail: str = "") -> None:
        self._record(Phase(name=name, detail=detail))
        self._context.recorder.doing(f"{name} {detail}".strip())


def _push_stored_work(order: WorkOrder, context: RunContext) -> Outcome:
    """Push the stored work of an order that ended without a push, such as a race's winner, and record the result.

    Raises OrderError (`E-PUSH-STORED`) if its branch is not on the remote, Preempted if the end of the run kept it from
    being pushed, and like `Workspaces.prepare`.
    """
    wanted = order.push
    if wanted is None:
        raise OrderError("the order does not say what to push", code="E-SERVICE-UNKNOWN")
    context.check_url(order.project.git_url)
    work = context.workspaces().stored_work(order, wanted, context.store.get, context.controls.check_end)
    stored = Delivered(branch=wanted.branch, head_commit=wanted.work.commit)
    delivered = pushed(stored, order, work, context.pushing) if context.pushing is not None else stored
    # Without the branch: a report names branches of its own order alone, and this one is another order's.
    context.recorder.record(delivered.model_copy(update={"branch": None, "head_commit": None}))
    if not delivered.pushed:
        # A run that is to end waits for no remote: after a stop of the drone, another run does.
        context.controls.check_end()
        raise OrderError(
            f"the branch {wanted.branch} could not be pushed",
            code="E-PUSH-STORED",
            why=delivered.push_error or "this drone pushes nothing",
            next=f"fleet patch {wanted.order} | git apply",
        )
    return Outcome(ExitStatus.STOPPED, f"Pushed {wanted.branch}.", wanted.branch)
