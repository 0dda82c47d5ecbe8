"""List records of the audit log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, select

from control_plane.contract.declarations import audit as declared
from control_plane.contract.declarations.audit import AuditExportFilter, AuditFilter, AuditRecordDocument
from control_plane.core import Caller, Core
from control_plane.db.audit import AuditRecord
from control_plane.operations.access.roles import require_everywhere
from control_plane.operations.gateway import performs
from control_plane.operations.row_documents import document_of


@performs(declared.LIST)
def list_records(core: Core, caller: Caller, /, **filters: Any) -> list[AuditRecordDocument]:
    """The records that the filters let through, newest first.

    Raises Forbidden for the records of all organizations, unless the caller may act in each of them.
    """
    wanted = AuditFilter(**filters)
    if wanted.everywhere:
        require_everywhere(caller)
    newest = select(AuditRecord).where(*conditions(caller, wanted)).order_by(AuditRecord.seq.desc())
    if wanted.before is not None:
        newest = newest.where(AuditRecord.seq < wanted.before)
    with core.database.read() as db:
        return [document_of(AuditRecordDocument, row) for row in db.scalars(newest.limit(wanted.limit))]


def conditions(caller: Caller, wanted: AuditExportFilter) -> Iterator[ColumnElement[bool]]:
    """Which records the filters let through."""
    if not wanted.everywhere:
        yield AuditRecord.organization_ref == caller.organization_id
    if wanted.since is not None:
        yield AuditRecord.at >= wanted.since
    if wanted.until is not None:
        yield AuditRecord.at < wanted.until
    if wanted.actor is not None:
        yield _is_actor(wanted.actor)
    for name in ("action", "target", "outcome", "door", "address", "code"):
        if (value := getattr(wanted, name)) is not None:
            yield getattr(AuditRecord, name) == value


def _is_actor(actor: str) -> ColumnElement[bool]:
    named = (AuditRecord.actor == actor) | (AuditRecord.actor_id == actor)
    # Most actors are no users: nothing would match all of these.
    return named | (AuditRecord.actor_user_id == actor) if actor else named
