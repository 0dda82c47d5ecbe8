"""The chain of the audit log: what happens now, and the append of its record to the transaction that does it.

`recording` names the change that the following transactions belong to. `Database` appends its record to the first of
them, before the commit: there is no change without its record, and no record of a change that was rolled back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Literal

from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control_plane.db.audit import HASH_LENGTH, AuditHead, AuditRecord

ActorKind = Literal["token", "session", "answer link", "drone", "control plane", "unknown"]
Outcome = Literal["began", "changed", "refused", "failed"]
GENESIS = "0" * HASH_LENGTH
"""The previous hash of the first record."""
_HEAD = 1
_NOTES = "audit_notes"
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class AuditEntry:
    """One record, before it has a place in the chain. It contains names and ids, never the values of a request."""

    at: datetime
    actor_kind: ActorKind
    actor: str
    action: str
    actor_id: str = ""
    actor_user_id: str = ""
    door: str = ""
    address: str = ""
    target: str = ""
    organization: str = ""
    organization_ref: str = ""
    outcome: Outcome = "changed"
    code: str = ""
    count: int = 1


_FIELDS = tuple(each.name for each in fields(AuditEntry))


@dataclass
class _Pending:
    """An operation that is running, whose first committed transaction gets its record."""

    entry: AuditEntry
    recorded: bool = False


_PENDING: ContextVar[_Pending | None] = ContextVar("audit_pending", default=None)


def is_recording() -> bool:
    """Whether the transactions of this context already belong to a change that is recorded."""
    return _PENDING.get() is not None


@contextmanager
def recording(entry: AuditEntry) -> Iterator[None]:
    """Record `entry` with the first writing transaction of the block that is committed; without one, nothing."""
    token = _PENDING.set(_Pending(entry))
    try:
        yield
    finally:
        _PENDING.reset(token)


def concerns(target: str) -> None:
    """Name the target of the operation that is running, if it has just created it."""
    pending = _PENDING.get()
    if pending is not None:
        pending.entry = replace(pending.entry, target=target)


def note(db: Session, entry: AuditEntry) -> None:
    """Record `entry` with this transaction, unless it is part of an operation that is recorded."""
    if not is_recording():
        db.info.setdefault(_NOTES, []).append(entry)


@contextmanager
def with_its_record(db: Session) -> Iterator[None]:
    """Append the record of the running operation when the block ends, unless an earlier transaction did; and notes."""
    pending = _PENDING.get()
    yield
    if pending is not None and not pending.recorded:
        append(db, pending.entry)
    for entry in db.info.pop(_NOTES, ()):
        append(db, entry)


def committed() -> None:
    """Note that the transaction with the record was committed: later ones of the same operation add none."""
    pending = _PENDING.get()
    if pending is not None:
        pending.recorded = True


def append(db: Session, entry: AuditEntry) -> None:
    """Append a record to the chain, as the last work of a writing transaction.

    It locks the head of the chain until the commit. A transaction that took another lock afterwards could wait for one
    that waits for it.
    """
    db.flush()
    seq, previous_hash = locked_head(db)
    values = _stored(entry)
    new_hash = hash_of(seq + 1, previous_hash, values)
    db.execute(insert(AuditRecord).values(seq=seq + 1, previous_hash=previous_hash, hash=new_hash, **values))
    db.execute(update(AuditHead).where(AuditHead.id == _HEAD).values(seq=seq + 1, hash=new_hash))


def hash_of_row(row: AuditRecord) -> str:
    """The hash that a stored record must have, by its own columns."""
    return hash_of(row.seq, row.previous_hash, {name: getattr(row, name) for name in _FIELDS})


def hash_of(seq: int, previous_hash: str, values: Mapping[str, Any]) -> str:
    """SHA-256 over a record's canonical JSON: sorted keys, no blanks, ASCII, without fields that are empty.

    An empty field is left out, so that records of a version that lacks the field keep their hash.
    """
    fields = {name: value for name, value in values.items() if value != ""}
    fields |= {"at": values["at"].astimezone(UTC).isoformat(), "seq": seq, "previous_hash": previous_hash}
    return sha256(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _stored(entry: AuditEntry) -> dict[str, Any]:
    """The values as the columns take them: of bounded length, without characters that PostgreSQL refuses."""
    columns = AuditRecord.__table__.columns
    return {
        name: _UNSTORABLE.sub("\ufffd", value)[: columns[name].type.length] if isinstance(value, str) else value  # type: ignore[attr-defined]
        for name, value in asdict(entry).items()
    }


def locked_head(db: Session) -> tuple[int, str]:
    """The newest record's number and hash; no other transaction appends one until this one ends."""
    head = select(AuditHead.seq, AuditHead.hash).where(AuditHead.id == _HEAD).with_for_update()
    found = db.execute(head).one_or_none()
    if found is None:
        try:
            with db.begin_nested():
                db.execute(insert(AuditHead).values(id=_HEAD, seq=0, hash=GENESIS))
        except IntegrityError:
            pass  # Another transaction began the chain at the same time.
        found = db.execute(head).one()
    return found.seq, found.hash
