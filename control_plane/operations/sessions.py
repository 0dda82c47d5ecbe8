"""Sessions: chats, whose turns run one at a time in the order of their submission."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from control_plane.core import Core
from control_plane.db.models import Project, Session
from control_plane.operations.checking import unknown
from shared.errors import Conflict
from shared.names import new_id
from shared.work_order import Mode

_NEAR = 1000


def find_session(db: Db, organization_id: str, session_id: str, project: Project) -> Session:
    """The session of this id. Raises NotFound, and Conflict where it is a session of another project."""
    row = db.get(Session, session_id)
    if row is None or row.organization_id != organization_id:
        recent = select(Session.id).where(Session.organization_id == organization_id)
        known = db.scalars(recent.order_by(Session.created_at.desc()).limit(_NEAR))
        raise unknown("session", session_id, known, "without --session a new one begins")
    if row.project_id != project.id:
        other = db.get_one(Project, row.project_id)
        raise Conflict(
            f"session {row.id} belongs to project {other.slug}, not to {project.slug}",
            code="E-SESSION-PROJECT",
            next=f"fleet submit … --project {other.slug} --session {row.id}    or leave --session out",
        )
    return row


def new_session(core: Core, project: Project, mode: Mode) -> Session:
    """A session, not yet added. It has no name: that is something that a model or a person gives it."""
    return Session(
        id=new_id(),
        organization_id=project.organization_id,
        project_id=project.id,
        name="",
        mode=mode,
        created_at=core.clock.now(),
    )
