"""Service: pushes the stored work of an order that ended without a push, such as the one that won a race."""

from __future__ import annotations

from drone.runs.context import RunContext
from drone.runs.delivery import pushed
from shared.errors import OrderError
from shared.events import Delivered
from shared.outcome import ExitStatus, Outcome
from shared.work_order import WorkOrder


def push_stored_work(order: WorkOrder, context: RunContext) -> Outcome:
    """Push the work that the order names, and record whether its branch is on the remote.

    Raises OrderError (`E-PUSH-STORED`) if it is not, and like `Workspaces.prepare`.
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
        raise OrderError(
            f"the branch {wanted.branch} could not be pushed",
            code="E-PUSH-STORED",
            why=delivered.push_error or "this drone pushes nothing",
            next=f"fleet patch {wanted.order} | git apply",
        )
    return Outcome(ExitStatus.STOPPED, f"Pushed {wanted.branch}.", wanted.branch)
