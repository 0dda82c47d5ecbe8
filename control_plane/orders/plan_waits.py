"""What a wait for the decision about a plan holds: the plan as presented and as edited, and the decision."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.db.waits import Wait
from control_plane.documents.plans import PlanEdit
from shared.control import Decide
from shared.plans import AgentPlan

PLAN = "plan"
"""The kind of a wait that a plan answers."""
APPROVE, SEND_BACK = "approve", "send back"
_KEPT = ("edited", "revision", "edited_by", "approved")


def edit_of(wait: Wait) -> PlanEdit:
    """The plan as edited so far."""
    details = wait.details
    plan = details.get("edited") or details[PLAN]
    return PlanEdit(
        plan=AgentPlan.model_validate(plan), revision=details.get("revision", 0), user=details.get("edited_by", "")
    )


def keep_edit(wait: Wait, plan: AgentPlan, by: str) -> None:
    """Replace the plan that waits."""
    more = {"edited": plan.model_dump(mode="json"), "revision": edit_of(wait).revision + 1, "edited_by": by}
    wait.details = {**wait.details, **more}


def keep_approved(wait: Wait, plan: AgentPlan | None) -> None:
    """Store the plan as approved; None: it was sent back."""
    wait.details = {**wait.details, "approved": plan.model_dump(mode="json") if plan else None}


def decision_of(wait: Wait) -> Decide:
    """The decision about a plan that a person made, for the run that waits."""
    approved = wait.details.get("approved")
    return Decide(
        run_id=wait.run_id,
        call_id=wait.subject,
        approved=wait.answer == APPROVE,
        comment=wait.comment,
        who=wait.answered_by or "",
        plan=AgentPlan.model_validate(approved) if approved else None,
    )


def carry_over(db: Session, run: Run, wait: Wait) -> None:
    """Take over what users did with the same plan when an earlier run presented it, before that run was lost.

    Edits stay, and a decision is not asked for twice. That run need not be one that this run continues from: it may
    have been lost after the decision and before its next checkpoint. What was decided before a retry does not count.
    """
    since = db.get_one(Order, run.order_id).fresh_generation
    earlier = select(Run.id).where(
        Run.order_id == run.order_id, Run.generation > since, Run.generation < run.generation
    )
    same = select(Wait).where(Wait.run_id.in_(earlier), Wait.subject == wait.subject, Wait.kind == PLAN)
    for before in db.scalars(same.order_by(Wait.number.desc())):
        if before.details.get(PLAN) != wait.details[PLAN]:
            continue
        wait.details = {**wait.details, **{name: before.details[name] for name in _KEPT if name in before.details}}
        if before.answered_at is not None:
            wait.answer, wait.comment, wait.decided_by = before.answer, before.comment, before.decided_by
            wait.answered_by, wait.answered_at = before.answered_by, before.answered_at
        return
