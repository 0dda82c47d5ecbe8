"""Service: try a project's repository, set-up and verification in a fresh workspace, and report the result."""

from __future__ import annotations

from typing import Literal

from drone.agent.budget import RunBudget
from drone.sandbox import CommandResult, CommandSpec
from drone.services.context import ServiceContext
from drone.workspace import Workspace
from shared.errors import LimitsExceeded, OrderError, UnsuitableDrone
from shared.events import MAX_COUNT, CheckedCommand, Phase, ProjectCheckStep
from shared.outcome import ExitStatus, Outcome
from shared.redaction import last_part
from shared.work_order import WorkOrder

SHOWN_OF_OUTPUT = 4_000
"""Characters of a failed command's output that the report has."""
_PHASES: dict[Literal["setup", "verify"], str] = {"setup": "setup", "verify": "verifying"}


def check_project(order: WorkOrder, context: ServiceContext, budget: RunBudget) -> Outcome:
    """Try the order's project without a model, and record the result as a step. The workspace is deleted afterwards.

    Raises UnsuitableDrone or Forbidden if this drone cannot, or may not, reach the repository: another one may;
    FleetFault if the repository cannot be reached now.
    """
    budget.start()
    context.check_url(order.project.git_url)
    try:
        report = _Attempt(order, context, budget).report()
    except UnsuitableDrone:
        raise
    except OrderError as error:
        what = f"{error.what[:1].upper()}{error.what[1:]}."
        report = ProjectCheckStep(ok=False, summary=what, code=error.code, detail=error.why, next=error.next)
    except LimitsExceeded:
        minutes = f"{order.limits.max_run_seconds / 60:.0f} minutes"
        what = f"The repository could not be fetched within the {minutes} of a check."
        report = ProjectCheckStep(
            ok=False, summary=what, code="E-CHECK-TIMEOUT", next=f"fleet project test {order.project.slug}"
        )
    context.recorder.record(report)
    return Outcome(ExitStatus.STOPPED, report.summary, report.summary)


class _Attempt:
    """One attempt, on one drone."""

    def __init__(self, order: WorkOrder, context: ServiceContext, budget: RunBudget) -> None:
        self._order = order
        self._context = context
        self._budget = budget
        self._commands: list[CheckedCommand] = []
        self._result: CommandResult | None = None
        """Of the last command; None: it did not end in time."""

    def report(self) -> ProjectCheckStep:
        self._phase("preparing")
        workspaces, clock = self._context.workspaces(), self._context.clock
        asked = clock.monotonic()
        workspaces.look_up(self._order, self._check_git)
        remote_ms = _ms(clock.monotonic() - asked)
        workspace = workspaces.prepare(self._order, _no_blob, self._check_git)
        try:
            may_push = workspace.may_push(self._check_git)
            self._run_commands(workspace)
        finally:
            workspace.discard()
        failed = next((each for each in self._commands if not each.passed), None)
        return ProjectCheckStep(
            ok=failed is None,
            remote_ms=remote_ms,
            default_branch=workspace.default_branch,
            branch=workspace.start.branch,
            may_push=may_push,
            commands=tuple(self._commands),
            **(self._passed() if failed is None else self._failed(failed)),
        )

    def _run_commands(self, workspace: Workspace) -> None:
        """Run set-up, then verification, until one command fails or the time is up."""
        project = self._order.project
        steps = [*(("setup", each) for each in project.setup), *(("verify", each) for each in project.verify)]
        for phase, command in steps:
            done = self._run(workspace, "setup" if phase == "setup" else "verify", command)
            self._commands.append(done)
            if not done.passed:
                return

    def _run(self, workspace: Workspace, phase: Literal["setup", "verify"], command: str) -> CheckedCommand:
        self._phase(_PHASES[phase], command)
        clock = self._context.clock
        began = clock.monotonic()
        try:
            result = workspace.sandbox.run(
                CommandSpec(
                    command,
                    workspace=workspace.path,
                    timeout=self._order.limits.max_run_seconds,
                    on_output=lambda text: self._context.recorder.delta("output", text),
                    check=self._check,
                )
            )
        except LimitsExceeded:
            result = None
        self._result = result
        passed = result is not None and result.return_code == 0
        return CheckedCommand(
            phase=phase,
            command=command,
            passed=passed,
            return_code=result.return_code if result is not None and not result.timed_out else None,
            duration_ms=_ms(clock.monotonic() - began),
            output="" if passed or result is None else _end_of(result),
        )

    def _passed(self) -> dict[str, str]:
        count = len(self._commands)
        commands = {0: "it has no commands to run", 1: "its command passed"}.get(count, f"its {count} commands passed")
        return {"summary": f"The repository can be fetched, and {commands}."}

    def _failed(self, failed: CheckedCommand) -> dict[str, str]:
        what = {"setup": "set-up", "verify": "verification"}[failed.phase]
        if self._result is None or self._result.timed_out:
            how = f"did not end within the {self._order.limits.max_run_seconds / 60:.0f} minutes of a check"
        else:
            how = self._result.how_it_ended
        return {
            "summary": f"The repository can be fetched, but the {what} command `{failed.command}` {how}.",
            "code": "E-CHECK-SETUP" if failed.phase == "setup" else "E-CHECK-VERIFY",
            "next": f"fleet project edit {self._order.project.slug} --{failed.phase} CMD",
        }

    def _check(self) -> None:
        """Raises Preempted, and LimitsExceeded when the time is up."""
        self._context.controls.check_end()
        self._budget.check()

    def _check_git(self) -> None:
        """Called while git works; that counts as progress."""
        self._check()
        self._context.recorder.delta("output", "")

    def _phase(self, name: str, detail: str = "") -> None:
        self._context.recorder.record(Phase(name=name, detail=detail))
        self._context.recorder.doing(f"{name} {detail}".strip())


def _end_of(result: CommandResult) -> str:
    return last_part(result.output, SHOWN_OF_OUTPUT)


def _ms(seconds: float) -> int:
    return min(round(seconds * 1000), MAX_COUNT)


def _no_blob(run_id: str, name: str) -> bytes:
    raise OrderError(
        f"a check needs no stored work, but {name} of run {run_id} was requested", code="E-SERVICE-UNKNOWN"
    )
