"""Records an operation in the audit log: its change with the first of its transactions, its refusal in one of its own.

A record says who did what to which target, never with which values: a request may contain secrets.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from control_plane.core import Core
from control_plane.core.origin import current_origin
from control_plane.db.audit_chain import AuditEntry, Outcome, append, is_recording, recording
from shared.errors import FleetError, Forbidden, Refused
from shared.terminal import logs

log = logs.get(__name__)
UNEXPECTED = "E-UNEXPECTED"


@contextmanager
def audited(core: Core, entry: AuditEntry, *, reads: bool = False) -> Iterator[None]:
    """Record the block: its change, its refusal, or its failure after or instead of a change.

    Part of another operation, it belongs to the record of that one. `reads`: it changes nothing, so only a refusal is
    recorded; a name that does not exist would fill the log otherwise.
    """
    if is_recording():
        yield
        return
    try:
        with recording(entry):
            yield
    except Exception as error:
        if not reads or isinstance(error, Forbidden):
            record_error(core, entry, error)
        else:
            current_origin().refusal_recorded = True
        raise


def record_error(core: Core, entry: AuditEntry, error: Exception) -> None:
    """Record that this was refused, or failed. If the database is at fault, the log of the process has to do."""
    outcome: Outcome = "refused" if isinstance(error, Refused) else "failed"
    code = error.code if isinstance(error, FleetError) else UNEXPECTED
    current_origin().refusal_recorded = True
    if outcome == "refused":
        record_refusal(core, entry, code)
    else:
        _record(core, replace(entry, outcome=outcome, code=code))


def record_refusal(core: Core, entry: AuditEntry, code: str) -> None:
    """Record that this was refused, or count it, if its sender was refused often within this minute."""
    refused = replace(entry, outcome="refused", code=code)
    if not current_origin().only_counted(refused):
        _record(core, refused)


def _record(core: Core, entry: AuditEntry) -> None:
    try:
        with core.database.write() as db:
            append(db, entry)
    except FleetError as fault:
        log.error("not in the audit log", action=entry.action, actor=entry.actor, code=entry.code, why=fault.what)
