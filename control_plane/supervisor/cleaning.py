"""Deletes what has expired: log-in links, sessions, handled messages, idempotency keys, checkpoints, refused reports,
drafts, traces that were given up, and ephemeral drones that are gone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import Select, delete, func, select, update

from control_plane.attention.outbox import clean_attention
from control_plane.automation.webhook_outbox import clean_deliveries
from control_plane.core import Core
from control_plane.core.background.timings import Timings
from control_plane.core.rows import each_alone
from control_plane.db.access import LoginLink, WebSession
from control_plane.db.audit import AuditSeal
from control_plane.db.audit_chain import AuditEntry, recording
from control_plane.db.drafts import UNSENT, SavedDraft
from control_plane.db.drones import Drone, InboxMessage
from control_plane.db.installation import Organization
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Blob
from control_plane.drones.pool_members import GONE_AFTER, is_gone
from control_plane.operations.drones.managing import remove
from control_plane.operations.retention.keeping import keep
from control_plane.supervisor.lost_runs import HeartbeatMonitor
from control_plane.telemetry.tracing.exporter import clean_exports
from shared.states import OrderStatus
from shared.terminal import logs

log = logs.get(__name__)

_KEPT = timedelta(days=7)
_KEPT_DRAFTS = timedelta(days=90)
_KEPT_OF_A_SUCCESS = timedelta(days=1)
"""For checkpoints of an order that succeeded: no run resumes from them."""
_JUST_STORED_S = 3600
_NEWEST = 15
"""Files of checkpoints kept for each run that may be resumed: a bundle and up to two patches of each. The rest are
deleted once they are an hour old."""
_AT_ONCE = 500
JUMP_SECONDS = 24 * 3600.0
"""A smaller error deletes what had at most a day left."""
WAIT_SECONDS = 24 * 3600.0
"""Time to notice a wrong clock, and to set it right."""


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


class ClockWatch:
    """Runs a deletion by age only while the wall clock agrees with the time since boot: a jump deletes nothing.

    At the start there is nothing to compare with but the newest signature of the audit log. If that is old, no
    supervisor ran or the clock jumped meanwhile: both wait.
    """

    def __init__(self, core: Core, deletion: Callable[[Core], object]) -> None:
        self._core = core
        self._deletion = deletion
        self._seen = self._newest_seal() or core.clock.now(), core.clock.boottime()
        """The wall clock when it was last looked at, and the seconds since boot then."""
        self._steady_from = 0.0

    def run(self) -> None:
        if self._is_steady():
            self._deletion(self._core)

    def _is_steady(self) -> bool:
        now, running = self._core.clock.now(), self._core.clock.boottime()
        (before, then), self._seen = self._seen, (now, running)
        off = (now - before).total_seconds() - (running - then)
        if abs(off) > JUMP_SECONDS:
            self._steady_from = running + WAIT_SECONDS
            log.warning(
                "the clock jumped, or no supervisor ran: nothing is deleted by age for a day", seconds=round(off)
            )
        return running >= self._steady_from

    def _newest_seal(self) -> datetime | None:
        with self._core.database.read() as db:
            return db.scalar(select(func.max(AuditSeal.at)))


# --- ephemeral drones -----------------------------------------------------------------------------


def remove_gone(core: Core, heartbeats: HeartbeatMonitor, timings: Timings) -> list[str]:
    """Remove the ephemeral drones that were offline for ten minutes, as no person does it; returns their names.

    Their Redis users and keys go with their rows. One whose events are not all stored stays until they are, or until
    what is missing was written off as a gap: its orders would lose steps that still arrive. None is removed while this
    side may be missing beats, or has stored none for long because it slept: its runs may be going on.
    """
    now = core.clock.now()
    with core.database.read() as db:
        living = db.scalars(select(Drone).where(Drone.pool_id.is_not(None), Drone.removed_at.is_(None)))
        silent = [drone for drone in living if heartbeats.silent_for(drone.id) >= timings.lost_after]
        gone = [drone for drone in silent if is_gone(drone, now)]
        names = {id_: name for id_, name in db.execute(select(Organization.id, Organization.name))} if gone else {}
    backlogs = core.broker.backlogs([drone.id for drone in gone]) if gone else {}
    stored = [drone for drone in gone if backlogs[drone.id].unstored == 0 and core.broker.lease(drone.id) is None]

    def remove_one(drone: Drone) -> str:
        with recording(_entry(core, drone, names[drone.organization_id])):
            remove(core, drone.organization_id, drone.id)
        log.info("an ephemeral drone is gone and was removed", drone=drone.id, name=drone.name)
        return drone.name

    return each_alone("gone members", stored, remove_one)


def _entry(core: Core, drone: Drone, organization: str) -> AuditEntry:
    minutes = int(GONE_AFTER.total_seconds() // 60)
    return AuditEntry(
        at=core.clock.now(),
        actor_kind="control plane",
        actor="system",
        action="remove_drone",
        door="control plane",
        target=f"{drone.name} (ephemeral, offline for {minutes} minutes)",
        organization=organization,
        organization_ref=drone.organization_id,
    )
