"""Seal the audit log: sign the head of its chain; and prune the records that have been kept long enough."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from control_plane.contract.declarations import audit as declared
from control_plane.contract.declarations.audit import PrunedDocument, PruneRequest
from control_plane.core import Caller, Core
from control_plane.core.audit_seals import new_seal
from control_plane.db.audit import AuditHead, AuditRecord, AuditSeal
from control_plane.db.audit_chain import AuditEntry, concerns, locked_head, recording
from control_plane.operations.gateway import performs
from shared.durations import kept_for
from shared.errors import Invalid

LEAST_AGE = timedelta(days=1)
"""What a caller may prune is at least this old."""
_AT_ONCE = 10_000


def seal_head(core: Core) -> None:
    """Sign the newest record, unless it is signed."""
    with core.database.read() as db:
        newest = db.scalar(select(func.max(AuditHead.seq)))
        if not newest or newest == db.scalar(select(func.max(AuditSeal.seq))):
            return
    with core.database.write() as db:
        place = locked_head(db)
        # Another process may have signed it meanwhile.
        if db.get(AuditSeal, (place[0], "head")) is None:
            db.add(new_seal(db, core.vault, core.clock, "head", place))


def prune_expired(core: Core) -> None:
    """Delete records older than the retention, by whole days, so that the log is pruned once a day."""
    if core.settings.audit_days is None:
        return
    midnight = core.clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    before = midnight - kept_for(core.settings.audit_days)
    by = AuditEntry(core.clock.now(), "control plane", "retention", declared.PRUNE.name, door="control plane")
    if found := _range(core, before):
        with recording(by):
            _prune(core, *found)


@performs(declared.PRUNE)
def prune(core: Core, _: Caller, /, request: PruneRequest) -> PrunedDocument:
    """Delete all records before a time. Raises Invalid if that is less than a day ago.

    It works on a full disk: what it deletes makes room for what it writes.
    """
    if request.before > core.clock.now() - LEAST_AGE:
        raise Invalid(
            "records of the last 24 hours cannot be pruned",
            code="E-AUDIT-RECENT",
            why="who gets hold of an admin token must not be able to remove its traces at once",
            next="choose an earlier time",
        )
    found = _range(core, request.before)
    if found is None:
        return PrunedDocument(records=0, anchor=None)
    first, last = found
    _prune(core, first, last)
    return PrunedDocument(records=last - first + 1, anchor=last)


def _range(core: Core, before: datetime) -> tuple[int, int] | None:
    """The first and the last record up to the first that is not older than `before`."""
    with core.database.read() as db:
        first, newest = db.execute(select(func.min(AuditRecord.seq), func.max(AuditRecord.seq))).one()
        kept = db.scalar(select(func.min(AuditRecord.seq)).where(AuditRecord.at >= before))
    last = newest if kept is None else kept - 1
    return None if first is None or last < first else (first, last)


def _prune(core: Core, first: int, last: int) -> None:
    """Delete these records, the oldest first. After each batch, a signed anchor is left, from which the rest verifies.

    The first batch is committed with the record of the pruning.
    """
    concerns(f"{first}-{last}")
    for start in range(first, last + 1, _AT_ONCE):
        with core.database.write() as db:
            # Another process may prune at the same time: only one of them at once.
            locked_head(db)
            _prune_to(db, core, min(last, start + _AT_ONCE - 1))


def _prune_to(db: Session, core: Core, last: int) -> None:
    place = db.execute(select(AuditRecord.seq, AuditRecord.hash).where(AuditRecord.seq == last)).one_or_none()
    if place is None:
        return
    db.execute(delete(AuditRecord).where(AuditRecord.seq <= last))
    db.execute(delete(AuditSeal).where(AuditSeal.seq <= last))
    db.add(new_seal(db, core.vault, core.clock, "anchor", (place.seq, place.hash)))
