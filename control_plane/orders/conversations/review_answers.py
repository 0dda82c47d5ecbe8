"""Review comments in conversations: which ones an order's agent has to answer, and what it answered.

An answer counts from the moment at which the agent gives it. If the order continues from before that step, because its
run was lost, the answer is undone with the step, and the comment is open again.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.orders import Order
from control_plane.db.reviews import ReviewComment
from control_plane.db.runs import Run
from control_plane.db.sessions import SessionEntry
from control_plane.orders.conversations.history import way_of
from control_plane.orders.conversations.run_paths import Segment, path_to
from shared.events import ReviewAnswerStep
from shared.work_order import CarriedComment

MOST = 500
"""Comments that a work order names; older ones can no longer be answered."""


def carried_comments(
    db: Session, order: Order, way: Sequence[SessionEntry], path: Sequence[Segment]
) -> tuple[CarriedComment, ...]:
    """The comments in the conversation of a run that continues from the end of `path`; empty if none is open."""
    rows = _carried(db, order, way)
    comments = tuple(CarriedComment(id=row.id, answered=_is_answered(row, order, path)) for row in rows)
    return comments if any(not each.answered for each in comments) else ()


def comments_in_message(db: Session, number: int | None) -> tuple[str, ...]:
    """The ids of the comments that a message to a running order contains."""
    if number is None:
        return ()
    sent = select(ReviewComment.id).where(ReviewComment.message_number == number)
    return tuple(db.scalars(sent.order_by(ReviewComment.number)))


def make_pending(db: Session, numbers: Sequence[int]) -> list[int]:
    """Let the unanswered comments in messages that no model reads be sent again; returns which messages have any."""
    unanswered = ReviewComment.message_number.in_(numbers), ReviewComment.verdict.is_(None)
    rows = db.scalars(select(ReviewComment).where(*unanswered)).all() if numbers else []
    found = [row.message_number for row in rows if row.message_number is not None]
    for row in rows:
        row.sent_at = row.sent_order_id = row.message_number = None
    return found


def make_turn_pending(db: Session, order: Order) -> None:
    """Let the unanswered comments that the ended order received be sent again: no later turn sees them.

    They still name the order: if it runs again, they are sent with it (`send_turn_again`), unless they were changed.
    """
    unanswered = ReviewComment.sent_order_id == order.id, ReviewComment.verdict.is_(None)
    db.execute(update(ReviewComment).where(*unanswered).values(sent_at=None))


def send_turn_again(db: Session, core: Core, order: Order) -> None:
    """The order runs again: the comments in its prompt and messages that are still pending are sent with it."""
    pending = ReviewComment.sent_order_id == order.id, ReviewComment.sent_at.is_(None)
    db.execute(update(ReviewComment).where(*pending).values(sent_at=core.clock.now()))


def note_answer(db: Session, core: Core, order: Order, place: tuple[Run, int], step: ReviewAnswerStep) -> None:
    """Record the agent's answer. Comments that the order does not carry are ignored, and so are second answers."""
    known = {row.id: row for row in _carried(db, order, way_of(db, order))}
    row = known.get(step.comment)
    if row is None or row.verdict is not None:
        return
    run, seq = place
    row.verdict, row.answer, row.answered_at = step.verdict, step.text, core.clock.now()
    row.answer_order_id, row.answer_run_id, row.answer_seq = order.id, run.id, seq
    db.flush()


def reopen_undone(db: Session, order: Order, run: Run) -> None:
    """Undo the answers of the order's earlier runs that are not on the path of this run, which has just begun."""
    path = path_to(db, run.id)
    given = select(ReviewComment).where(ReviewComment.answer_order_id == order.id)
    for row in db.scalars(given):
        if not _on_path(row, path):
            row.verdict = row.answer = row.answered_at = row.done_commit = None
            row.answer_order_id = row.answer_run_id = row.answer_seq = None


def fill_in_commit(db: Session, order: Order, commit: str | None) -> None:
    """Set the commit of the comments that the order's agent reported as done."""
    done = ReviewComment.answer_order_id == order.id, ReviewComment.verdict == "done"
    db.execute(update(ReviewComment).where(*done).values(done_commit=commit))


def unsettled(db: Session, order_id: str) -> int:
    """How many comments on the order, or sent to it, have no answer so far."""
    of_order = or_(ReviewComment.order_id == order_id, ReviewComment.sent_order_id == order_id)
    open_ones = of_order, ReviewComment.sent_at.is_not(None), ReviewComment.verdict.is_(None)
    return db.scalar(select(func.count()).select_from(ReviewComment).where(*open_ones)) or 0


def _carried(db: Session, order: Order, way: Sequence[SessionEntry]) -> list[ReviewComment]:
    """The comments that were sent to the order or to earlier turns of its conversation."""
    orders = [order.id, *(entry.order_id for entry in way if entry.order_id is not None)]
    sent = select(ReviewComment).where(ReviewComment.sent_order_id.in_(orders), ReviewComment.sent_at.is_not(None))
    return list(db.scalars(sent.order_by(ReviewComment.number.desc()).limit(MOST)))[::-1]


def _is_answered(row: ReviewComment, order: Order, path: Sequence[Segment]) -> bool:
    return row.verdict is not None and (row.answer_order_id != order.id or _on_path(row, path))


def _on_path(row: ReviewComment, path: Sequence[Segment]) -> bool:
    return any(each.run_id == row.answer_run_id and each.holds(row.answer_seq or 0) for each in path)
