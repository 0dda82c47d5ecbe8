"""Notes in the inbox: what agents propose to remember, until a user keeps or refuses it."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session as Db

from control_plane.db.memory import MemoryNote
from control_plane.db.orders import Order
from control_plane.db.projects import Project
from control_plane.declarations.inbox import InboxItem
from control_plane.operations.access.roles import may
from control_plane.operations.inbox.scope import InboxView


def count_notes(db: Db, inbox: InboxView) -> dict[str, int]:
    """The number of notes that wait for a decision."""
    waiting = select(func.count()).select_from(MemoryNote).where(*_proposed(inbox))
    return {"memory": db.scalar(waiting) or 0}


def note_items(db: Db, inbox: InboxView, limit: int) -> Iterator[InboxItem]:
    """The notes that wait for a decision, newest first."""
    wanted = (
        select(MemoryNote, Project.slug, Order)
        .outerjoin(Project, Project.id == MemoryNote.project_id)
        .outerjoin(Order, Order.id == MemoryNote.order_id)
        .where(*_proposed(inbox))
    )
    for note, project, order in db.execute(wanted.order_by(MemoryNote.created_at.desc(), MemoryNote.id).limit(limit)):
        yield InboxItem(
            id=f"memory:{note.id}",
            kind="memory",
            title=note.text,
            text=note.why,
            choices=[],
            default=None,
            deadline=None,
            since=note.created_at,
            organization=inbox.organizations[note.organization_id],
            project=project,
            order=note.order_id,
            session=order.session_id if order else None,
            task=order.task_id if order else None,
            drone=None,
            user=order.user if order else "",
            waiting_for=None,
            may_answer=may(inbox.caller, "operator"),
            next=inbox.command(f"fleet memory accept {note.id}", note.organization_id),
        )


def _proposed(inbox: InboxView) -> tuple[ColumnElement[bool], ...]:
    mine = (MemoryNote.user_id == inbox.user_id,) if inbox.user_id is not None else ()
    return (MemoryNote.organization_id.in_(inbox.organizations), MemoryNote.state == "proposed", *mine)
