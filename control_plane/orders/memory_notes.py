"""The notes of a project and of its organization: proposed by agents, and part of prompts once a user kept them."""

from __future__ import annotations

import logging

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.memory import MemoryNote
from control_plane.db.orders import Order
from shared.events import RememberStep
from shared.memory import MAX_NOTE, MAX_REASON, one_line
from shared.names import new_id
from shared.redaction import Redactor
from shared.work_order import OrderMemory

log = logging.getLogger(__name__)

MAX_BYTES = 8_000
"""Of all kept notes of one project, and of those for all projects of an organization: they are in every prompt."""
MOST_PROPOSED = 200
"""Open proposals of an organization; further ones are only in the transcript of their order."""
_REDACTOR = Redactor()


def has_secret(text: str) -> bool:
    """Whether the text contains what looks like a key, token or password."""
    return _REDACTOR.text(text) != text


def propose(db: Session, core: Core, order: Order, step: RememberStep) -> bool:
    """Keep an agent's proposal for a user to decide. Returns whether it is new.

    A note that is proposed, kept or was refused already is not proposed again, and one that no drone of ours would
    send (too long, or with a secret) is ignored.
    """
    text, why = one_line(step.text[: 2 * MAX_NOTE]), one_line(step.why[: 2 * MAX_REASON])
    if not text or len(text) > MAX_NOTE or len(why) > MAX_REASON or has_secret(text) or has_secret(why):
        log.warning("a proposed note was ignored: it is empty, too long or contains a secret")
        return False
    project_id = None if step.scope == "organization" else order.project_id
    organization = MemoryNote.organization_id == order.organization_id
    known = select(MemoryNote.id).where(organization, in_scope(project_id), MemoryNote.text == text)
    waiting = select(func.count()).select_from(MemoryNote).where(organization, MemoryNote.state == "proposed")
    if db.scalar(known.limit(1)) is not None or (db.scalar(waiting) or 0) >= MOST_PROPOSED:
        return False
    db.add(
        MemoryNote(
            id=new_id(),
            organization_id=order.organization_id,
            project_id=project_id,
            text=text,
            why=why,
            state="proposed",
            order_id=order.id,
            user_id=order.user_id,
            created_at=core.clock.now(),
        )
    )
    db.flush()
    return True


def memory_of(db: Session, order: Order) -> OrderMemory:
    """The kept notes for an order's prompt, each kind in the order in which they were written."""
    return OrderMemory(
        organization=_kept(db, order.organization_id, None), project=_kept(db, order.organization_id, order.project_id)
    )


def in_scope(project_id: str | None) -> ColumnElement[bool]:
    """The notes of a project, or those for all projects."""
    return MemoryNote.project_id.is_(None) if project_id is None else MemoryNote.project_id == project_id


def _kept(db: Session, organization_id: str, project_id: str | None) -> tuple[str, ...]:
    kept = MemoryNote.organization_id == organization_id, MemoryNote.state == "kept", in_scope(project_id)
    return tuple(db.scalars(select(MemoryNote.text).where(*kept).order_by(MemoryNote.created_at, MemoryNote.id)))
