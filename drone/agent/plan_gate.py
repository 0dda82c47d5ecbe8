"""Keeps a run from changing anything until a person has approved its plan, and keeps the report against that plan."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from drone.agent.budget import BudgetedControls, RunBudget
from drone.agent.protocols import Controls, Recorder
from drone.agent.question import Question
from drone.agent.values import Ruling
from shared.clock import Clock
from shared.errors import Interrupted, LimitsExceeded
from shared.events import ApprovalStep, PlanStep, PointReportStep
from shared.messages import Message, ToolCall
from shared.outcome import ExitStatus, Outcome
from shared.plans import PRESENT, REPORT, AgentPlan, PlanPoint, PlanProgress, PointReport

_BEGINS = "<approved_plan>"
NOT_PRESENTED = (
    f"You have not presented a plan, so nothing was changed. If the work needs changes, call {PRESENT} now; if it does "
    "not, end again with your answer."
)


class PlanGate:
    """Implements `drone.agent.protocols.Planning`.

    A plan is presented by a call; the run waits for the person's decision before its next question to the model, when
    the step is complete. A run that resumes there waits again, for the same plan, without asking the model.
    """

    def __init__(  # noqa: PLR0913 - each is a part of one run
        self,
        progress: PlanProgress,
        *,
        recorder: Recorder,
        controls: Controls,
        budget: RunBudget,
        clock: Clock,
        timeout: float,
        harmless: Collection[str] = (),
    ) -> None:
        """`timeout`: seconds that a plan waits for its decision; 0: without limit."""
        self.progress = progress
        self._recorder = recorder
        self._controls = BudgetedControls(controls, budget)
        self._budget = budget
        self._clock = clock
        self._timeout = timeout
        self.harmless = harmless
        """The names of the tools that may be used before the approval: they change nothing."""

    # --- what the tools do ----------------------------------------------------------------

    def present(self, plan: AgentPlan) -> None:
        """Record the plan; the run waits for its decision once the step is complete."""
        self._recorder.record(PlanStep(plan=plan))
        self.progress = self.progress.with_presented(plan)

    def report(self, report: PointReport) -> None:
        """Record what became of a point."""
        self._recorder.record(PointReportStep(report=report))
        self.progress = self.progress.with_report(report)

    # --- what the loop asks ---------------------------------------------------------------

    def refusal(self, call: ToolCall) -> str | None:
        match self.progress.state:
            case "presented":
                return "your plan is with your user, whose decision follows; call nothing else until then"
            case "planning" if call.name not in self.harmless:
                return f"no plan is approved yet, so nothing may be changed; read what you need, then call {PRESENT}"
            case _:
                return None

    def settle(self) -> Sequence[str]:
        """Raises LimitsExceeded if the plan is not decided in time, and what the controls raise meanwhile."""
        presented = self.progress.presented
        if self.progress.state != "presented" or presented is None:
            return ()
        try:
            ruling = self._decided(presented)
        except Interrupted:
            # The message counts as the answer: the agent revises with it.
            self.progress = self.progress.with_decision(None)
            raise
        if not ruling.in_time:
            reason = f"The plan was not approved within {self._timeout:g} s; nothing was changed."
            raise LimitsExceeded(outcome=Outcome(ExitStatus.PLAN_UNANSWERED, reason))
        approved = (ruling.plan or presented) if ruling.approved else None
        self.progress = self.progress.with_decision(approved, ruling.who)
        return (sent_back_text(ruling) if approved is None else approved_text(presented, approved, ruling),)

    def notices(self, transcript: Sequence[Message]) -> tuple[Message, ...]:
        """For the next question only: the approved plan, if a compaction removed the message with it."""
        if self.progress.plan is None or any(_BEGINS in message.content for message in transcript):
            return ()
        lines = "\n".join(_numbered(self.progress.plan, None))
        return (Message(role="user", content=f"{_BEGINS}\n{lines}\n</approved_plan>\n{self.left()}"),)

    def reminder(self) -> str:
        """What the agent is told if it ends with unreported points; empty: there are none."""
        if not self.progress.unreported:
            return ""
        return (
            f"Your turn is about to end, but you have not reported points {_listed(self.progress.unreported)} of the "
            f"approved plan. Call {REPORT} for each of them now: done, skipped or changed. Then end again."
        )

    def left(self) -> str:
        """Which points have no report, for the model."""
        unreported = self.progress.unreported
        return f"not reported yet: {_listed(unreported)}" if unreported else "all points are reported"

    def _decided(self, plan: AgentPlan) -> Ruling:
        step = ApprovalStep(about="plan", call_id=self.progress.subject, tool=PRESENT, why=plan.title, plan=plan)
        with self._budget.waiting():
            question = Question(step, self._recorder, self._clock, self._timeout)
            return question.ask(self._controls.ruling, self._controls.check)


def approved_text(presented: AgentPlan, approved: AgentPlan, ruling: Ruling) -> str:
    """The approved plan as its agent reads it: each point, which were changed, and which must not be done."""
    parts = [
        f"{ruling.who or 'Your user'} approved your plan as follows. All your tools may be used now. Carry out exactly "
        f"these points, and call {REPORT} for each as soon as it is done, skipped or changed.",
        "\n".join((_BEGINS, *_numbered(approved, presented), "</approved_plan>")),
    ]
    dropped = [each.text for each in presented.points if not any(each.same_as(other) for other in approved.points)]
    if dropped and len(approved.points) < len(presented.points):
        parts.append("No longer in the plan; do not do this:\n" + "\n".join(f"- {text}" for text in dropped))
    if ruling.comment:
        parts.append(f"Their comment: {ruling.comment}")
    return "\n\n".join(parts)


def sent_back_text(ruling: Ruling) -> str:
    """That the plan was sent back, with the person's words."""
    comment = f":\n\n{ruling.comment}" if ruling.comment else " without a comment."
    return f"{ruling.who or 'Your user'} sent your plan back{comment}\n\nRevise it, and call {PRESENT} again."


def _numbered(plan: AgentPlan, presented: AgentPlan | None) -> list[str]:
    lines = []
    for number, point in enumerate(plan.points, start=1):
        if not point.approved:
            lines.append(f"{number}. NOT APPROVED, do not do this: {point.text}")
            continue
        lines.append(f"{number}. {point.text}{_changed(point, presented)}")
        lines += [f"   Files: {', '.join(point.files)}"] if point.files else []
        lines += [f"   Verify: {point.verify}"] if point.verify else []
    return lines


def _changed(point: PlanPoint, presented: AgentPlan | None) -> str:
    known = presented is None or any(point.same_as(each) for each in presented.points)
    return "" if known else " [changed or added by the user]"


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
