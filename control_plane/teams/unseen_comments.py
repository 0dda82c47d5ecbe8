"""Comments that an agent wrote in an interrupted run and that its next run does not know about."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.conversations.run_paths import Segment
from control_plane.db.orders import Order
from control_plane.db.runs import Step


def unseen_comments(db: Session, order: Order, path: Iterable[Segment]) -> tuple[str, ...]:
    """The comments of the order's earlier runs that are not on `path`, in order of arrival.

    A comment counts as soon as it is written: it is not undone with the step that was cut off. The run that continues
    must therefore receive it, or it would write it again.
    """
    if order.attempt == 0:
        return ()
    along = {segment.run_id: segment for segment in path}
    comments = select(Step.run_id, Step.run_seq, Step.body).where(
        Step.order_id == order.id, Step.kind == "comment", Step.late.is_(False)
    )
    return tuple(
        str(body["text"]).replace("\0", "")
        for run_id, run_seq, body in db.execute(comments.order_by(Step.seq))
        if body.get("to_task") and not (run_id in along and along[run_id].holds(run_seq))
    )
