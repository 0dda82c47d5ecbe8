"""Notices: what each user is to be told, written in the transaction of the event that they report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.contract.declarations.attention import AttentionKind
from control_plane.core import Core
from control_plane.db.attention import AttentionNotice

MAX_TEXT = 2000


@dataclass(frozen=True)
class Told:
    """One event as users are told of it."""

    organization_id: str
    kind: AttentionKind
    subject: str
    """Unique for the event in the organization, at most 120 characters."""
    title: str
    text: str
    page: str
    """The address of its page, without the host."""
    wait_number: int | None = None
    task_id: str | None = None
    drone_id: str | None = None


def tell(db: Session, core: Core, told: Told, user_ids: Iterable[str]) -> None:
    """Write the notices; a user who was already told of this event is not told again."""
    same = AttentionNotice.organization_id == told.organization_id, AttentionNotice.subject == told.subject
    known = set(db.scalars(select(AttentionNotice.user_id).where(*same)))
    for user_id in dict.fromkeys(user_ids):
        if user_id not in known:
            db.add(_row(core, told, user_id))


def _row(core: Core, told: Told, user_id: str) -> AttentionNotice:
    return AttentionNotice(
        organization_id=told.organization_id,
        user_id=user_id,
        kind=told.kind,
        subject=told.subject,
        title=told.title,
        text=told.text[:MAX_TEXT],
        page=told.page,
        wait_number=told.wait_number,
        task_id=told.task_id,
        drone_id=told.drone_id,
        created_at=core.clock.now(),
    )
