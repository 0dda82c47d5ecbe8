"""Deletes expired data: log-in links, sessions, handled messages, idempotency keys, checkpoints, refused reports,
drafts, traces that were given up."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Select, delete, func, select, update

from control_plane.attention.outbox import clean_attention
from control_plane.automation.webhook_outbox import clean_deliveries
from control_plane.core import Core
from control_plane.db.access import LoginLink, WebSession
from control_plane.db.drafts import UNSENT, SavedDraft
from control_plane.db.drones import InboxMessage
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Blob
from control_plane.operations.retention.keeping import keep
from control_plane.tracing.exporter import clean_exports
from shared.states import OrderStatus

_KEPT = timedelta(days=7)
_KEPT_DRAFTS = timedelta(days=90)
_KEPT_OF_A_SUCCESS = timedelta(days=1)
"""For checkpoints of an order that succeeded: no run resumes from them."""
_JUST_STORED_S = 3600
_NEWEST = 15
"""Files of checkpoints kept for each run that may be resumed: a bundle and up to two patches of each. The rest are
deleted once they are an hour old."""
_AT_ONCE = 500


def clean(core: Core) -> None:
    """Delete expired rows and checkpoints, and what the retention says (`control_plane.operations.retention`)."""
    now = core.clock.now()
    with core.database.write() as db:
        db.execute(delete(LoginLink).where(LoginLink.expires_at < now - _KEPT))
        db.execute(delete(WebSession).where(WebSession.expires_at < now))
        db.execute(delete(InboxMessage).where(InboxMessage.done_at < now - _KEPT))
        db.execute(delete(SavedDraft).where(SavedDraft.updated_at < now - _KEPT_DRAFTS))
        db.execute(delete(SavedDraft).where(SavedDraft.updated_at < now - _KEPT, ~UNSENT))
        clean_deliveries(db, now)
        clean_attention(db, core, now)
        clean_exports(db, now)
        old = update(Order).where(Order.idempotency_key.is_not(None), Order.created_at < now - _KEPT)
        db.execute(old.values(idempotency_key=None))
    while _clean_checkpoints(core, now):
        pass
    keep(core)


def _clean_checkpoints(core: Core, now: datetime) -> bool:
    """Delete one batch of checkpoints that no run will resume from any more; true if there may be more."""
    with core.database.write() as db:
        old = db.scalars(_old_checkpoints(now).limit(_AT_ONCE)).all()
        old = old or db.scalars(_superseded(now).limit(_AT_ONCE)).all()
        for blob in old:
            db.delete(blob)
        db.flush()
        names = {blob.sha256 for blob in old}
        needed = set(db.scalars(select(Blob.sha256).where(Blob.sha256.in_(names), Blob.sealed))) if names else set()
    # Files are deleted after the commit, as a row promises its file. A file that was just stored may belong to a row
    # that is not written yet.
    for name in names - needed:
        core.blobs.remove(name, sealed=True, stored_before=now - timedelta(seconds=_JUST_STORED_S))
    return len(old) == _AT_ONCE


def _old_checkpoints(now: datetime) -> Select[Blob]:
    succeeded = (Order.status == OrderStatus.SUCCEEDED) & (Order.ended_at < now - _KEPT_OF_A_SUCCESS)
    ended = Order.ended_at < now - _KEPT
    of_order = select(Blob).join(Dispatch, Dispatch.id == Blob.run_id).join(Order, Order.id == Dispatch.order_id)
    return of_order.where(Blob.sealed, succeeded | ended)


def _superseded(now: datetime) -> Select[Blob]:
    place = func.row_number().over(partition_by=Blob.run_id, order_by=Blob.created_at.desc()).label("place")
    placed = select(Blob.run_id, Blob.sha256, place).where(Blob.sealed).subquery()
    same = (Blob.run_id == placed.c.run_id) & (Blob.sha256 == placed.c.sha256)
    settled = Blob.created_at < now - timedelta(seconds=_JUST_STORED_S)
    return select(Blob).join(placed, same).where(placed.c.place > _NEWEST, settled)
