"""The summary of a branch that a user left by switching the session, written before the run begins (O-034)."""

from __future__ import annotations

from drone.agent.agent import Agent
from drone.agent.budget import RunBudget
from drone.agent.compaction.estimate import Estimate
from drone.agent.compaction.footer import Footer
from drone.agent.compaction.summary import Summarizer
from drone.agent.values import ModelCallFailed
from shared.errors import LimitsExceeded
from shared.events import CommentStep, ErrorStep
from shared.work_order import WorkOrder

_INSTRUCTIONS = (
    "The user left this branch of the conversation and continues from an earlier point, with the files as they were "
    "there. Say what was tried, what came of it, and what is worth knowing for another approach."
)


def left_branch_note(order: WorkOrder, agent: Agent, budget: RunBudget) -> str:
    """What the opening message says of the branch; '' if there is none. The run pays for the summary.

    Without a summary, because the model failed or a limit was reached, the run begins without it: a step says so.
    """
    text = order.session.left_summary
    if not text and order.session.left and order.resumed is None:
        text = _written(order, agent, budget)
    return f"Summary of the branch of this conversation that was left:\n\n{text}" if text else ""


def _written(order: WorkOrder, agent: Agent, budget: RunBudget) -> str:
    budget.start()
    estimate = Estimate(agent.model, lambda: (), order.limits)
    agent.recorder.doing("summarizing the branch that was left")
    try:
        text = Summarizer(agent.model, budget, estimate).write(
            order.session.left, "", Footer(request=order.prompt), _INSTRUCTIONS
        )
    except (ModelCallFailed, LimitsExceeded) as failed:
        why = failed.what if isinstance(failed, ModelCallFailed) else "a limit of the run was reached."
        agent.recorder.record(ErrorStep(what=f"The branch that was left was not summarized: {why}"))
        return ""
    agent.recorder.record(CommentStep(text=text, left_leaf=order.session.left_leaf))
    return text
