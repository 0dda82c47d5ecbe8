"""Documents of plans."""

from __future__ import annotations

from typing import Literal

from control_plane.contract.documents.base import Document
from shared.plan_text import plan_text
from shared.plans import AgentPlan, PlanProgress, PointReport, PointResult, report_line


class PlanEdit(Document):
    """What users have made of a presented plan."""

    plan: AgentPlan | None
    revision: int = 0
    user: str = ""


class PlanPointDocument(Document):
    """One point of a plan."""

    number: int
    text: str
    files: list[str]
    verify: str
    """How it will be verified; empty: not stated."""
    approved: bool
    """False: it is not to be carried out."""
    result: PointResult | None
    """What became of it; null: not reported."""
    commit: str
    """The commit that the agent named; empty: none."""
    report: str
    """What became of it in words; empty while the plan is not approved, and for a point that was dropped."""


class PlanDocument(Document):
    """The plan of an order, as edited."""

    state: Literal["planning", "presented", "approved"]
    """`planning`: the agent may only read. `presented`: the plan waits for a user. `approved`: it is carried out."""
    round: int
    """How many plans the agent presented; 0: none so far."""
    title: str
    summary: str
    points: list[PlanPointDocument]
    revision: int
    """How often the presented plan was edited."""
    user: str
    """Who edited it last; once it is approved, who approved it. Empty: no one, or a user without a name."""
    text: str
    """The plan as Markdown, which edit_plan takes; empty if there is none."""


def plan_document(progress: PlanProgress, edited: PlanEdit | None = None) -> PlanDocument:
    """The document of a plan; `edited`: what users have made of the presented plan so far."""
    if edited is None or progress.state != "presented":
        edited = PlanEdit(plan=progress.plan or progress.presented, user=progress.by)
    plan = edited.plan
    reports = {each.point: each for each in progress.reports}
    approved = progress.state == "approved"
    return PlanDocument(
        state=progress.state,
        round=progress.rounds,
        title=plan.title if plan else "",
        summary=plan.summary if plan else "",
        points=_points(plan, reports, approved=approved) if plan else [],
        revision=edited.revision,
        user=edited.user,
        text=plan_text(plan) if plan else "",
    )


def _points(plan: AgentPlan, reports: dict[int, PointReport], *, approved: bool) -> list[PlanPointDocument]:
    return [
        PlanPointDocument(
            number=number,
            text=point.text,
            files=list(point.files),
            verify=point.verify,
            approved=point.approved,
            result=reports[number].result if number in reports else None,
            commit=reports[number].commit if number in reports else "",
            report=report_line(reports.get(number)) if approved and point.approved else "",
        )
        for number, point in enumerate(plan.points, start=1)
    ]
