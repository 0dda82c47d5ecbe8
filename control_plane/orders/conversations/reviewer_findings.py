"""What the reviewer of an order found, in whichever of its runs: it is asked once."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.db.orders import Order
from control_plane.db.runs import Run, Step
from shared.events import Finding, ReviewerStep


@dataclass(frozen=True)
class LastReview:
    """The newest review of an order, and the step that reports it."""

    run_id: str
    run_seq: int
    findings: tuple[Finding, ...]


def last_review(db: Session, order: Order) -> LastReview | None:
    """The newest review since the order last began from scratch; None if the reviewer has not answered yet.

    A review that did not come about is no review: the next run asks again.
    """
    steps = (
        select(Step.run_id, Step.run_seq, Step.body)
        .join(Run, Run.id == Step.run_id)
        .where(
            Step.order_id == order.id,
            Step.kind == "reviewer",
            Step.late.is_(False),
            Run.generation > order.fresh_generation,
        )
        .order_by(Step.seq.desc())
    )
    for run_id, run_seq, body in db.execute(steps):
        step = ReviewerStep.model_validate(body)
        if not step.problem:
            return LastReview(run_id, run_seq, step.findings)
    return None
