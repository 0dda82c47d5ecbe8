"""Plans: what an agent proposes before it changes anything, what a person makes of it, and the report against it.

Points are numbered from 1 by their place in the plan. A person may edit the plan as a whole; the numbers are then those
of the edited plan.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from shared.wire import Wire

PRESENT, REPORT = "present_plan", "report_point"
"""The tools of an agent that plans first."""
MAX_POINTS = 50
MAX_TITLE, MAX_SUMMARY, MAX_POINT, MAX_VERIFY, MAX_FILE = 200, 4000, 2000, 500, 300
"""Characters of the title, the summary, a point, how it is verified, and the name of a file."""
MAX_FILES = 20
"""Files of a point."""
MAX_PLAN = 60_000
"""Characters of a plan, so that an event holds two of them."""

PointResult = Literal["done", "skipped", "changed"]
"""`done`: as planned. `skipped`: not done, for a reason. `changed`: done in another way, for a reason."""


class PlanPoint(Wire):
    """One point of a plan."""

    text: str
    files: tuple[str, ...] = ()
    """The files that it concerns, as far as known."""
    verify: str = ""
    """How it will be verified; empty: not stated."""
    approved: bool = True
    """False: a person dropped the point, which must not be carried out."""

    def same_as(self, other: PlanPoint) -> bool:
        """Whether both say the same, approved or not."""
        return (self.text, self.files, self.verify) == (other.text, other.files, other.verify)


class AgentPlan(Wire):
    """A plan as presented by an agent, or as edited by a person."""

    title: str
    summary: str = ""
    points: tuple[PlanPoint, ...] = Field(())

    @property
    def approved(self) -> dict[int, PlanPoint]:
        """The points to be carried out, by number."""
        return {number: point for number, point in enumerate(self.points, start=1) if point.approved}

    def approving(self, numbers: Iterable[int]) -> AgentPlan:
        """The plan with exactly these points approved."""
        chosen = frozenset(numbers)
        points = (
            point.model_copy(update={"approved": number in chosen}) for number, point in enumerate(self.points, start=1)
        )
        return self.model_copy(update={"points": tuple(points)})


class PointReport(Wire):
    """What became of an approved point."""

    point: int
    """Its number."""
    result: PointResult
    commit: str = ""
    """The commit that has it, if the agent made one."""
    text: str = ""
    """The reason, or what was done."""


PlanState = Literal["planning", "presented", "approved"]
"""`planning`: only tools that read may be used. `presented`: a person has the plan. `approved`: its points are carried
out."""


class PlanProgress(Wire):
    """How far an order with a plan has come, along the path of its runs."""

    state: PlanState = "planning"
    rounds: int = 0
    """How many plans were presented."""
    presented: AgentPlan | None = None
    """The newest plan as its agent presented it."""
    plan: AgentPlan | None = None
    """The approved plan, as edited."""
    by: str = ""
    """Who approved it; empty: a person without a name."""
    reports: tuple[PointReport, ...] = ()
    """The last report on each point."""

    @property
    def subject(self) -> str:
        """Names the newest plan in waits and decisions: `plan-2`."""
        return f"plan-{self.rounds}"

    def with_presented(self, plan: AgentPlan) -> PlanProgress:
        """A plan was presented."""
        return PlanProgress(state="presented", rounds=self.rounds + 1, presented=plan)

    def with_decision(self, approved: AgentPlan | None, by: str = "") -> PlanProgress:
        """A person approved the presented plan, or sent it back (None)."""
        if approved is None:
            return self.model_copy(update={"state": "planning"})
        return self.model_copy(update={"state": "approved", "plan": approved, "by": by})

    def with_report(self, report: PointReport) -> PlanProgress:
        """The agent reported on a point; a second report replaces the first."""
        others = (each for each in self.reports if each.point != report.point)
        return self.model_copy(update={"reports": tuple(sorted((*others, report), key=lambda each: each.point))})

    @property
    def unreported(self) -> tuple[int, ...]:
        """The numbers of the approved points without a report."""
        reported = {each.point for each in self.reports}
        return tuple(number for number in (self.plan.approved if self.plan else ()) if number not in reported)


def report_line(report: PointReport | None) -> str:
    """What became of a point, in a few words: `done in 1a2b3c4`, `skipped: no longer needed`, `not reported`."""
    if report is None:
        return "not reported"
    head = f"{report.result} in {report.commit[:12]}" if report.commit else report.result
    return f"{head}: {report.text}" if report.text else head
