"""How far the plan of an order has come, along the path of its runs.

A report counts from the moment at which the agent makes it. If the order continues from before that step, because its
run was lost, the report is undone with the step.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import TypeAdapter
from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.db.orders import Order
from control_plane.db.runs import Run, Step
from control_plane.orders.conversations.run_paths import Segment, path_to, run_that_speaks
from shared.events import Body, DecisionStep, PlanStep, PointReportStep
from shared.plans import PlanProgress

_KINDS = ("plan", "decision", "point_report")
_BODY: TypeAdapter[Body] = TypeAdapter(Body)


def plan_of_order(db: Session, order: Order) -> PlanProgress | None:
    """The order's plan as it is now; None if the order needs none."""
    if not order.plan_first:
        return None
    run_id = run_that_speaks(db, order)
    # A retry begins from scratch, with another plan.
    if run_id is None or db.get_one(Run, run_id).generation <= order.fresh_generation:
        return PlanProgress()
    return plan_along(db, order, path_to(db, run_id))


def plan_along(db: Session, order: Order, path: Sequence[Segment]) -> PlanProgress | None:
    """The plan at the end of `path`, for a run that continues from there; None if the order needs none."""
    if not order.plan_first:
        return None
    progress = PlanProgress()
    for segment in path:
        steps = select(Step.run_seq, Step.body).where(
            Step.run_id == segment.run_id, Step.kind.in_(_KINDS), Step.late.is_(False)
        )
        for run_seq, body in db.execute(steps.order_by(Step.run_seq)):
            if segment.holds(run_seq):
                progress = _after(progress, _BODY.validate_python(body))
    return progress


def _after(progress: PlanProgress, body: Body) -> PlanProgress:
    match body:
        case PlanStep(plan=plan):
            return progress.with_presented(plan)
        case PointReportStep(report=report):
            return progress.with_report(report)
        # After the deadline the plan still waits: the order ended, and a person may resume it.
        case DecisionStep(about="plan", by="person" | "interruption", approved=approved, plan=plan, who=who):
            return progress.with_decision((plan or progress.presented) if approved else None, who)
        case _:
            return progress
