"""Keep to the retention: what the rules are, how much is held, and what is removed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from control_plane.contract.declarations import retention as declared
from control_plane.contract.declarations.retention import HeldDocument, RemovedDocument, RetentionRequest
from control_plane.core import Caller, Core
from control_plane.db.audit import AuditRecord
from control_plane.db.drones import RawEvent
from control_plane.db.orders import Order
from control_plane.db.runs import Blob, Step
from control_plane.operations.gateway import performs
from control_plane.operations.retention.removable import (
    MIB,
    RemovalFigures,
    RemovalPhase,
    blobs_held,
    find,
    size_of,
    used_bytes,
)
from control_plane.operations.retention.removing import Remover
from control_plane.operations.retention.rules import rules_of
from shared.terminal import logs

log = logs.get(__name__)


@performs(declared.SHOW)
def show(core: Core, _: Caller) -> list[HeldDocument]:
    """Each kind with its rule, and what it holds. It reads the size of every step, which takes a while."""
    days = {rule.kind: rule for rule in rules_of(core.settings)}
    with core.database.read() as db:
        held = {
            "readings": _orders(db, Order.purpose == "code_host"),
            "services": _orders(db, Order.purpose.not_in(("work", "code_host"))),
            "steps": _rows(db, func.sum(size_of(Step.body)), Step.at),
            "logs": blobs_held(db, "logs"),
            "work": blobs_held(db, "work"),
            "raw events": _rows(db, func.sum(size_of(RawEvent.fields)), RawEvent.at),
        }
        audit = _rows(db, func.sum(0), AuditRecord.at)
        files = db.scalar(select(func.count()).select_from(select(Blob.sha256, Blob.sealed).distinct().subquery()))
        used = used_bytes(db)
    limit = core.settings.blob_limit_mb
    return [
        *(_held(kind, days[kind].setting, _of_days(days[kind].days), held[kind]) for kind in days),
        _held("audit log", "FLEET_AUDIT_DAYS", _of_days(core.settings.audit_days), (*audit[:1], None, audit[2])),
        _held(
            "all blobs", "FLEET_BLOB_LIMIT_MB", "unlimited" if limit is None else f"{limit} MiB", (files, used, None)
        ),
    ]


@performs(declared.RUN)
def run(core: Core, _: Caller, /, request: RetentionRequest) -> list[RemovedDocument]:
    """Remove what is due now, and return what that was; with `dry_run`, what it would be."""
    phases = find(core)
    if not request.dry_run:
        phases = _removed(core, phases)
    found: dict[str, RemovalFigures] = {}
    for phase in phases:
        found[phase.kind] = found.get(phase.kind, RemovalFigures()) + phase.figures
    return [RemovedDocument(kind=kind, rows=each.rows, bytes=each.bytes) for kind, each in found.items()]


def keep(core: Core) -> None:
    """Remove what is due; for the supervisor."""
    removed = {phase.kind: phase.figures.rows for phase in _removed(core, find(core)) if phase.figures.rows}
    if removed:
        log.info("removed what was kept long enough", **{kind.replace(" ", "_"): n for kind, n in removed.items()})
    limit = core.settings.blob_limit_mb
    if limit is not None:
        with core.database.read() as db:
            used = used_bytes(db)
        if used > limit * MIB:
            log.warning("blobs are above FLEET_BLOB_LIMIT_MB, and all that are left are needed", mib=used // MIB)


def _removed(core: Core, phases: Sequence[RemovalPhase]) -> list[RemovalPhase]:
    remover = Remover(core)
    return [remover.remove(phase) for phase in phases]


Held = tuple[int | None, int | None, datetime | None]
"""Rows, bytes and the oldest."""


def _held(kind: str, setting: str, kept: str, held: Held) -> HeldDocument:
    rows, size, oldest = held
    return HeldDocument(kind=kind, setting=setting, kept=kept, rows=rows or 0, bytes=size, oldest=oldest)


def _of_days(days: int | None) -> str:
    return "unlimited" if days is None else f"{days} day{'s' if days > 1 else ''}"


def _orders(db: Session, of_kind: ColumnElement[bool]) -> Held:
    rows, oldest = db.execute(select(func.count(), func.min(Order.created_at)).where(of_kind)).one()
    ids = select(Order.id).where(of_kind)
    return rows, db.scalar(select(func.sum(size_of(Step.body))).where(Step.order_id.in_(ids))) or 0, oldest


def _rows(db: Session, size: ColumnElement[int], at: InstrumentedAttribute[datetime]) -> Held:
    rows, held, oldest = db.execute(select(func.count(at), size, func.min(at))).one()
    return rows, held or 0, oldest
