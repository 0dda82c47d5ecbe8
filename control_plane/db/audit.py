"""Rows of the audit log: its records, each with the hash of the one before, the head of their chain, and its seals."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import String, Text
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Row, Seq

HASH_LENGTH = 64


class AuditRecord(Row):
    """One change or refusal. Records are added and, from the oldest on, pruned; none is ever changed."""

    __tablename__ = "audit_records"
    seq: Mapped[int] = mapped_column(Seq, primary_key=True, autoincrement=False)
    """1, 2, 3, … without a gap, in the order of the commits."""
    at: Mapped[datetime] = mapped_column(index=True)
    actor_kind: Mapped[str] = mapped_column(String(16))
    actor: Mapped[str] = mapped_column(String(128))
    """The name at that time."""
    actor_id: Mapped[str] = mapped_column(String(64))
    actor_user_id: Mapped[str] = mapped_column(Id)
    """The person's id, which outlives the user; empty for others."""
    door: Mapped[str] = mapped_column(String(16))
    address: Mapped[str] = mapped_column(String(64))
    action: Mapped[str] = mapped_column(String(64))
    """The operation's name."""
    target: Mapped[str] = mapped_column(String(255))
    organization: Mapped[str] = mapped_column(String(64))
    """The name at that time."""
    organization_ref: Mapped[str] = mapped_column(Id, index=True)
    """The organization's id. Not `organization_id`: the record outlives the organization."""
    outcome: Mapped[str] = mapped_column(String(16))
    code: Mapped[str] = mapped_column(String(64))
    """The error's code, unless it is a change."""
    count: Mapped[int]
    """How many times within the minute from `at` on, for refusals that are summed."""
    previous_hash: Mapped[str] = mapped_column(String(HASH_LENGTH))
    hash: Mapped[str] = mapped_column(String(HASH_LENGTH))


class AuditHead(Row):
    """The newest record's number and hash, in a single row: its lock is the order of the chain."""

    __tablename__ = "audit_heads"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    seq: Mapped[int] = mapped_column(Seq)
    hash: Mapped[str] = mapped_column(String(HASH_LENGTH))


class AuditKey(Row):
    """The control plane's Ed25519 key that signs the chain. A retired one is kept: old seals name it."""

    __tablename__ = "audit_keys"
    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    """`shared.envelope.key_id` of the public key."""
    public_key: Mapped[str] = mapped_column(Text)
    """Base64."""
    sealed_private_key: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    retired_at: Mapped[datetime | None]


class AuditSeal(Row):
    """A signature under the number and hash of one record: of a head at that time, or of the last pruned record."""

    __tablename__ = "audit_seals"
    seq: Mapped[int] = mapped_column(Seq, primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    """head or anchor."""
    hash: Mapped[str] = mapped_column(String(HASH_LENGTH))
    at: Mapped[datetime]
    key_id: Mapped[str] = mapped_column(String(16))
    signature: Mapped[str] = mapped_column(Text)
    """Base64; over `control_plane.core.audit_seals.sealed_text`."""
