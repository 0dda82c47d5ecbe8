"""One order to its last event: prepare, set up, loop, verify, deliver; and the boundary of errors around all of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from pydantic import TypeAdapter

from drone.agent.agent import Agent
from drone.agent.budget import Bounded, Budget
from drone.agent.journal import StoreLog
from drone.agent.prompts import system_prompt, user_prompt
from drone.agent.protocols import Controls, Model, Recorder
from drone.runs.blobs import Store
from drone.runs.controls import Wish
from drone.runs.delivery import Pushing, deliver
from drone.runs.verdict import Verdict, of_error, of_outcome, of_wish, step_of
from drone.sandbox import Sandbox
from drone.tools import build_toolbox
from drone.workspace import Workspace, Workspaces
from shared.clock import Clock
from shared.errors import OrderError, Preempted
from shared.events import CommentStep, Phase, Prepared, Receipt, RunEnded, RunStarted, Stats
from shared.messages import Message
from shared.outcome import ExitStatus, Outcome
from shared.work_order import WorkOrder

_HISTORY: TypeAdapter[list[Message]] = TypeAdapter(list[Message])
SHOWN_OF_COMMAND = 4_000
"""Characters of a failed command's output that its error carries."""


class RunWishes(Controls, Protocol):
    """Controls that also know whether the run is to end, and stay quiet while it delivers."""

    @property
    def wish(self) -> Wish | None:
        """Why the run is to end, if it is."""
        ...

    def check_stale(self) -> None:
        """Raises StaleRun alone."""
        ...


MakeModel = Callable[[WorkOrder, Recorder, Controls], Model]


@dataclass(frozen=True)
class RunContext:
    """What a run needs from around it; on a drone from its worker, in `drone run` from the command line."""

    boot_id: str
    recorder: Recorder
    controls: RunWishes
    clock: Clock
    sandbox: Sandbox
    workspaces: Callable[[], Workspaces]
    """Called inside the boundary: a workspace directory that is not ours is this run's error."""
    store: Store
    pushing: Pushing | None
    """None: nothing is pushed."""
    log_dir: Path
    make_model: MakeModel
    check_url: Callable[[str], None]
    """Lets the repository's URL pass or raises Refused: the policy of the machine's owner."""
    end_processes: Callable[[], Receipt]
    """Ends whatever the run has started and is still there."""
    store_log: StoreLog | None = None


def execute(order: WorkOrder, context: RunContext) -> RunEnded:
    """Run `order` to its end and return its last event.

    Everything that happens is in the recorder's events, `run_started` first and `run_ended` last, whatever goes wrong:
    this is the boundary of errors of a run. Only StaleRun comes out, with nothing recorded after it.
    """
    return _Run(order, context).to_its_end()


class _Run:
    """One run on its way; the parts that have come about so far."""

    def __init__(self, order: WorkOrder, context: RunContext) -> None:
        self._order = order
        self._context = context
        self._record = context.recorder.record
        self._workspace: Workspace | None = None
        self._agent: Agent | None = None

    def to_its_end(self) -> RunEnded:
        self._record(RunStarted(boot_id=self._context.boot_id, sandbox=self._context.sandbox.kind))
        verdict = self._judged(self._work)
        # Before the delivery: nothing that the agent left running shall change the files while they are committed.
        receipt = self._end_processes()
        if self._workspace is not None:
            verdict = self._delivered(verdict, self._workspace)
            # Before the last event: the session's next order may be on its way as soon as that is known.
            self._workspace.close()
        self._context.controls.check_stale()
        end = RunEnded(
            status=verdict.status,
            exit_status=verdict.exit_status,
            reason=verdict.reason,
            response=verdict.response,
            stats=self._agent.stats() if self._agent else Stats(),
            receipt=receipt,
            give_back=verdict.give_back,
            order_at_fault=verdict.order_at_fault,
        )
        self._record(end)
        return end

    def _judged(self, part: Callable[[], Verdict]) -> Verdict:
        """Do a part of the run, and turn whatever it raises into a verdict."""
        try:
            return part()
        except Preempted as signal:
            wish = self._context.controls.wish or Wish("stop", str(signal) or "the run was asked to end")
            return of_wish(wish)
        except Exception as error:  # noqa: BLE001 - the boundary of a run: recorded with all that is known, and judged by its class
            self._record(step_of(error))
            return of_error(error)

    def _work(self) -> Verdict:
        order, controls = self._order, self._context.controls
        self._phase("preparing", "the workspace")
        self._context.check_url(order.project.git_url)
        workspace = self._context.workspaces().prepare(order, self._context.store.get, controls.check)
        self._workspace = workspace
        self._record(Prepared(base_commit=workspace.base_commit, default_branch=workspace.default_branch))
        self._commands("setup", order.project.setup, workspace)
        outcome = self._loop(workspace)
        if outcome.succeeded:
            outcome = self._verified(outcome, workspace)
        wish = controls.wish
        if outcome.exit_status is ExitStatus.CANCELED and wish is not None:
            return of_wish(wish, outcome.response)
        return of_outcome(outcome)

    def _loop(self, workspace: Workspace) -> Outcome:
        order, context = self._order, self._context
        self._phase("working")
        budget = Budget(order.limits, context.clock)
        bounded = Bounded(context.controls, budget)
        toolbox = build_toolbox(
            workspace.path,
            workspace.sandbox,
            mode=order.session.mode,
            command_timeout=order.limits.command_timeout,
            log_dir=context.log_dir,
            on_output=lambda text: context.recorder.delta("output", text),
            check=bounded.check,
        )
        self._agent = Agent(
            model=context.make_model(order, context.recorder, bounded),
            toolbox=toolbox,
            recorder=context.recorder,
            controls=context.controls,
            limits=order.limits,
            clock=context.clock,
            budget=budget,
            store_log=context.store_log,
        )
        prompt = user_prompt(order, workspace.path, context.clock.now())
        return self._agent.run(system_prompt(order, workspace.instructions()), self._history(), prompt)

    def _history(self) -> tuple[Message, ...]:
        """The session so far: in the order, or in a blob where it is long."""
        blob = self._order.context_blob
        if blob is None:
            return self._order.context
        return tuple(_HISTORY.validate_json(self._context.store.get(self._order.run_id, blob)))

    def _verified(self, outcome: Outcome, workspace: Workspace) -> Outcome:
        """Let the project's own commands judge the work; it is kept either way."""
        try:
            self._commands("verifying", self._order.project.verify, workspace)
        except OrderError as error:
            self._record(step_of(error))
            return replace(outcome, exit_status=ExitStatus.VERIFICATION_FAILED, reason=error.what)
        return outcome

    def _commands(self, phase: str, commands: tuple[str, ...], workspace: Workspace) -> None:
        """Run the project's commands, one after the other. Raises OrderError when one fails."""
        for command in commands:
            self._phase(phase, command)
            result = workspace.sandbox.run(
                command,
                workspace=workspace.path,
                timeout=self._order.limits.max_run_seconds,
                on_output=lambda text: self._context.recorder.delta("output", text),
                check=self._context.controls.check,
            )
            if result.return_code != 0:
                how = "took too long" if result.timed_out else f"ended with exit code {result.return_code}"
                raise OrderError(
                    f"The project's command `{command}` {how}",
                    code=f"E-{phase.upper()}",
                    why=result.output[-SHOWN_OF_COMMAND:],
                )

    def _delivered(self, verdict: Verdict, workspace: Workspace) -> Verdict:
        """Store and push what there is, whatever the verdict; a run that was asked to end keeps its work unpushed."""

        def part() -> Verdict:
            self._context.controls.check_stale()
            self._phase("delivering")
            pushing = None if verdict.status == "preempted" else self._context.pushing
            delivered, remarks = deliver(self._order, workspace, self._context.store, pushing)
            for remark in remarks:
                self._record(CommentStep(text=remark))
            self._record(delivered)
            return verdict

        judged = self._judged(part)
        # What could not be delivered fails a success; a failure stays what it is.
        return judged if verdict.status == "success" else verdict

    def _end_processes(self) -> Receipt | None:
        """The receipt of a run that was asked to end; others end their processes without one."""
        rest = self._context.end_processes()
        if self._context.controls.wish is None:
            return None
        tally = self._context.sandbox.tally
        return Receipt(
            found=tally.found + rest.found,
            ended=tally.ended + rest.ended,
            survivors=rest.survivors,
            at=self._context.clock.now(),
        )

    def _phase(self, name: str, detail: str = "") -> None:
        self._record(Phase(name=name, detail=detail))
        self._context.recorder.doing(f"{name} {detail}".strip())
