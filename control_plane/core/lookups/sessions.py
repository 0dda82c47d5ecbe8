"""Sessions, found by the names that people use."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from sqlalchemy import ScalarSelect, func, select
from sqlalchemy.orm import Session as Db
from sqlalchemy.orm import aliased

from control_plane.contract.validation.checks import unknown
from control_plane.db.orders import Order
from control_plane.db.projects import Project
from control_plane.db.sessions import ChatSession
from shared.errors import Conflict
from shared.states import ENDED

_NEAR = 1000
_READ = 500
"""Characters of a prompt that are read for its title."""


@cache
def session_title() -> ScalarSelect[str]:
    """What the session of an order is called: its name or title, else the beginning of its first prompt."""
    first = aliased(Order)
    prompt = select(func.substr(first.prompt, 1, _READ)).where(first.session_id == Order.session_id)
    begins = prompt.order_by(first.number).limit(1).correlate(Order).scalar_subquery()
    named = func.coalesce(func.nullif(ChatSession.name, ""), func.nullif(ChatSession.title, ""), begins)
    return select(named).where(ChatSession.id == Order.session_id).correlate(Order).scalar_subquery()


def session_of(db: Db, organization_id: str, session_id: str, *, listing: str = "fleet session ls") -> ChatSession:
    """The session with this id. Raises NotFound with similar ids."""
    row = db.get(ChatSession, session_id)
    if row is None or row.organization_id != organization_id:
        recent = select(ChatSession.id).where(ChatSession.organization_id == organization_id)
        known = db.scalars(recent.order_by(ChatSession.created_at.desc()).limit(_NEAR))
        raise unknown("session", session_id, known, listing)
    return row


def find_session(db: Db, organization_id: str, session_id: str, project: Project) -> ChatSession:
    """The session that an order is about to join, locked. Raises NotFound, Conflict if it belongs to another project.

    The lock keeps the session's leaf from moving while an order enters it.
    """
    row = session_of(db, organization_id, session_id, listing="omit --session to start a new session")
    if row.project_id != project.id:
        other = db.get_one(Project, row.project_id)
        raise Conflict(
            f"session {row.id} belongs to project {other.slug}, not to {project.slug}",
            code="E-SESSION-PROJECT",
            next=f"fleet submit … --project {other.slug} --session {row.id}    or omit --session",
        )
    db.refresh(row, with_for_update=True)
    return row


def unfinished(db: Db, session_id: str) -> Sequence[Order]:
    """The session's orders that have not ended, in the order in which they run."""
    waiting = select(Order).where(Order.session_id == session_id, Order.status.not_in(ENDED))
    return db.scalars(waiting.order_by(Order.number)).all()


def refuse_while_busy(db: Db, chat: ChatSession) -> None:
    """Return if the session is idle (O-003). Raises Conflict, which names the blocking order."""
    if orders := unfinished(db, chat.id):
        raise Conflict(
            f"session {chat.id} is busy: its order {orders[0].id} is {orders[0].status}",
            code="E-SESSION-BUSY",
            why="its position can be changed only between two turns",
            next=f"fleet follow {orders[0].id}    or: fleet cancel {orders[0].id}",
        )
