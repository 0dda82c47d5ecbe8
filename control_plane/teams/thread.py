"""A task's thread: comments are added, never changed (S-040)."""

from __future__ import annotations

from sqlalchemy.orm import Session

from control_plane.contract.documents.base import MAX_COMMENT, SYSTEM, USER
from control_plane.core import Core
from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.db.teams import Agent, Comment, Task
from control_plane.teams.system_notes import Note


def agent_wrote(db: Session, core: Core, order: Order, run: Run, text: str) -> None:
    """Add a comment by the agent of a task's run, under its name. The caller has checked that the run is current."""
    if order.task_id is None or order.agent_id is None or not text.strip():
        return
    task, agent = db.get_one(Task, order.task_id), db.get_one(Agent, order.agent_id)
    _add(db, core, task, Comment(author=agent.name, agent_id=agent.id, text=_cut(text, run.id), run_id=run.id))


def system_says(db: Session, core: Core, task: Task, note: Note, run_id: str | None = None) -> Comment:
    """Add a system comment; `run_id` is the run it is about."""
    comment = Comment(author=SYSTEM, kind=note.kind, text=note.text, agent_id=note.agent_id, run_id=run_id)
    return _add(db, core, task, comment)


def person_wrote(db: Session, core: Core, task: Task, user: str, text: str) -> Comment:
    """Add a person's comment; `user` is the name of their token. The caller checks permissions."""
    return _add(db, core, task, Comment(author=USER, user=user, text=text))


def _add(db: Session, core: Core, task: Task, comment: Comment) -> Comment:
    comment.organization_id, comment.task_id, comment.at = task.organization_id, task.id, core.clock.now()
    comment.kind, comment.user = comment.kind or "comment", comment.user or ""
    db.add(comment)
    db.flush()
    return comment


def _cut(text: str, run_id: str) -> str:
    """The comment, cut to the maximum length, with a remark where to find the rest."""
    if len(text) <= MAX_COMMENT:
        return text
    remark = f"\n\n[Truncated: the comment has {len(text):,} characters. Full text: fleet run show {run_id} --full]"
    return text[: MAX_COMMENT - len(remark)] + remark
