"""Export the audit log as JSON lines, streamed from one snapshot of the database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.contract.declarations import audit as declared
from control_plane.contract.declarations.audit import AuditExportFilter, AuditRecordDocument
from control_plane.core import Caller, Core
from control_plane.db.audit import AuditRecord
from control_plane.operations.access.roles import require_everywhere
from control_plane.operations.audit.reading import conditions
from control_plane.operations.audit.verifying import newest_seal
from control_plane.operations.gateway import performs
from control_plane.operations.row_documents import document_of

_AT_ONCE = 1000


@performs(declared.EXPORT)
def export_lines(core: Core, caller: Caller, /, **filters: Any) -> Iterator[str]:
    """A line for each record, oldest first, and an end with their number and, of all organizations, the newest head.

    Raises Forbidden before the first line, as `list_records`.
    """
    wanted = AuditExportFilter(**filters)
    if wanted.everywhere:
        require_everywhere(caller)
    return _lines(core, caller, wanted)


def _lines(core: Core, caller: Caller, wanted: AuditExportFilter) -> Iterator[str]:
    count = 0
    with core.database.snapshot() as db:
        records = select(AuditRecord).where(*conditions(caller, wanted)).order_by(AuditRecord.seq)
        with closing(db.scalars(records.execution_options(yield_per=_AT_ONCE))) as rows:
            for row in rows:
                count += 1
                document = document_of(AuditRecordDocument, row).model_dump(mode="json")
                yield _line({"kind": "record", **document, "previous_hash": row.previous_hash})
        yield _line({"kind": "end", "records": count, "head": _head(db) if wanted.everywhere else None})


def _head(db: Session) -> dict[str, Any] | None:
    found = newest_seal(db)
    return found.model_dump(mode="json") if found else None


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"
