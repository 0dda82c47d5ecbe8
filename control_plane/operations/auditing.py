"""Records an operation in the audit log: its change with the first of its transactions, its refusal in one of its own.

A record says who did what to which target, never with which values: a request may contain secrets.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from control_plane.core import Caller, Core
from control_plane.core.origin import current_origin
from control_plane.db.audit_chain import AuditEntry, Outcome, append, is_recording, recording
from shared.errors import FleetError, FleetFault, Refused
from shared.terminal import logs

log = logs.get(__name__)
UNEXPECTED = "E-UNEXPECTED"


@contextmanager
def audited(core: Core, entry: AuditEntry) -> Iterator[None]:
    """Record the block: its change, its refusal, or its failure after or instead of a change.

    Part of another operation, it belongs to the record of that one.
    """
    if is_recording():
        yield
        return
    try:
        with recording(entry):
            yield
    except Exception as error:
        record_error(core, entry, error)
        raise


def record_error(core: Core, entry: AuditEntry, error: Exception) -> None:
    """Record that this was refused, or failed. If the database is at fault, the log of the process has to do."""
    outcome: Outcome = "refused" if isinstance(error, Refused) else "failed"
    code = error.code if isinstance(error, FleetError) else UNEXPECTED
    ended = replace(entry, outcome=outcome, code=code)
    current_origin().refusal_recorded = True
    try:
        with core.database.write() as db:
            append(db, ended)
    except FleetFault as fault:
        log.error("not in the audit log", action=ended.action, actor=ended.actor, code=code, why=fault.what)


def entry_of(core: Core, caller: Caller, action: str, target: str = "") -> AuditEntry:
    """What the caller is doing."""
    origin = current_origin()
    return AuditEntry(
        at=core.clock.now(),
        **_actor(caller),
        action=action,
        door=origin.door,
        address=origin.address,
        target=target,
        organization=caller.organization,
        organization_ref=caller.organization_id,
    )


def _actor(caller: Caller) -> dict[str, Any]:
    if caller.login_session_id is not None:
        name = f"login session {caller.login_session_id}"
        return {"actor_kind": "session", "actor": name, "actor_id": caller.token_id or ""}
    if caller.token_id is not None:
        return {"actor_kind": "token", "actor": caller.user, "actor_id": caller.token_id}
    return {"actor_kind": "control plane", "actor": caller.user}
