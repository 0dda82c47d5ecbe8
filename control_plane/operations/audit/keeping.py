"""Keep the audit log: sign the head of its chain, and prune the records that have been kept long enough."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.core.audit_seals import new_seal
from control_plane.db.audit import AuditHead, AuditRecord, AuditSeal
from control_plane.db.audit_chain import AuditEntry, append, locked_head

PRUNE = "prune_audit_log"
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
    midnight = core.clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    by = AuditEntry(core.clock.now(), "control plane", "retention", PRUNE, door="control plane")
    while prune(core, midnight - timedelta(days=core.settings.audit_days), by):
        pass


def prune(core: Core, before: datetime, by: AuditEntry) -> int:
    """Delete the oldest records, up to the first that is not older than `before`; returns how many, at most 10,000.

    A signed anchor with the number and hash of the last deleted record stays, from which the chain verifies. `by` is
    recorded, in the same transaction, with the numbers of the deleted records.
    """
    with core.database.write() as db:
        head, _hash = locked_head(db)
        first = db.scalar(select(func.min(AuditRecord.seq)))
        if first is None:
            return 0
        kept = db.scalar(select(func.min(AuditRecord.seq)).where(AuditRecord.at >= before))
        last = min(head if kept is None else kept - 1, first + _AT_ONCE - 1)
        if last < first:
            return 0
        _prune_to(db, core, last)
        append(db, replace(by, target=f"{first}-{last}"))
        pruned: int = last - first + 1
        return pruned


def _prune_to(db: Session, core: Core, last: int) -> None:
    place = db.execute(select(AuditRecord.seq, AuditRecord.hash).where(AuditRecord.seq == last)).one()
    db.execute(delete(AuditRecord).where(AuditRecord.seq <= last))
    db.execute(delete(AuditSeal).where(AuditSeal.seq <= last))
    db.add(new_seal(db, core.vault, core.clock, "anchor", (place.seq, place.hash)))
