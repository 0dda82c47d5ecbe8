"""A task's thread: comments are added, never changed (S-040)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.db.teams import Agent, Comment, Task
from control_plane.documents.base import MAX_COMMENT, SYSTEM, USER
from control_plane.teams.system_notes import Note


def agent_wrote(db: Session, core: Core, order: Order, run: Run, text: str) -> None:
    """Add what the agent of a task's run wrote, under its name. The caller has seen that the run is the current one."""
    if order.task_id is None or order.agent_id is None or not text.strip():
        return
    task, agent = db.get_one(Task, order.task_id), db.get_one(Agent, order.agent_id)
    _add(db, core, task, Comment(author=agent.name, agent_id=agent.id, text=_cut(text, run.id), run_id=run.id))


def system_says(db: Session, core: Core, task: Task, note: Note, run_id: str | None = None) -> Comment:
    """Add a sentence of the fleet's own; `run_id` is the run that it is about."""
    return _add(db, core, task, Comment(author=SYSTEM, kind=note.kind, text=note.text, run_id=run_id))


def person_wrote(db: Session, core: Core, task: Task, user: str, text: str) -> Comment:
    """Add what a person wrote; `user` is the name of their token. Whether they may is seen to by the caller."""
    return _add(db, core, task, Comment(author=USER, user=user, text=text))


def thread(db: Session, task_id: str) -> Sequence[Comment]:
    """The comments of a task, the oldest first."""
    return db.scalars(select(Comment).where(Comment.task_id == task_id).order_by(Comment.id)).all()


def _add(db: Session, core: Core, task: Task, comment: Comment) -> Comment:
    comment.organization_id, comment.task_id, comment.at = task.organization_id, task.id, core.clock.now()
    comment.kind, comment.user = comment.kind or "comment", comment.user or ""
    db.add(comment)
    db.flush()
    return comment


def _cut(text: str, run_id: str) -> str:
    """A comment as long as comments may be, with a remark where the rest is."""
    if len(text) <= MAX_COMMENT:
        return text
    remark = f"\n\n[Cut: the comment has {len(text):,} characters. All of it: fleet run show {run_id} --full]"
    return text[: MAX_COMMENT - len(remark)] + remark
