"""What an agent wrote into the thread in a run that was broken off, and its next run cannot know of by itself."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.conversations.run_paths import Segment
from control_plane.db.orders import Order
from control_plane.db.runs import Step


def unseen_comments(db: Session, order: Order, path: Iterable[Segment]) -> tuple[str, ...]:
    """The comments of the order's earlier runs that are on no part of `path`, in the order in which they came.

    A comment counts from the moment at which it is written: it is not undone with the step that was cut off. So the
    run that goes on has to be told of it, or it would write it again.
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
