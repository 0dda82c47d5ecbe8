"""What a wait for the decision about a plan holds: the plan as presented and as edited, and the decision."""

from __future__ import annotations

from control_plane.contract.documents.plans import PlanEdit
from control_plane.db.waits import Wait
from shared.plans import AgentPlan

PLAN = "plan"
"""The kind of a wait that a plan answers."""
APPROVE, SEND_BACK = "approve", "send back"
KEPT = ("edited", "revision", "edited_by", "approved")
"""What of the details users wrote."""


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
