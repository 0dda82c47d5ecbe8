"""Rows that have had their time: log-in links, browser sessions, messages that were acted on, idempotency keys."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import delete, update

from control_plane.core import Core
from control_plane.db.models import InboxMessage, LoginLink, Order, WebSession

_KEPT = timedelta(days=7)


def clean(core: Core) -> None:
    """Delete what is past use; orders, runs and steps are never touched, only an old order's idempotency key."""
    now = core.clock.now()
    with core.database.write() as db:
        db.execute(delete(LoginLink).where(LoginLink.expires_at < now - _KEPT))
        db.execute(delete(WebSession).where(WebSession.expires_at < now))
        db.execute(delete(InboxMessage).where(InboxMessage.done_at < now - _KEPT))
        old = update(Order).where(Order.idempotency_key.is_not(None), Order.created_at < now - _KEPT)
        db.execute(old.values(idempotency_key=None))
