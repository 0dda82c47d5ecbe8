"""Rows of drones, their inboxes, and unreadable reports."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, text
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row, Seq, unique_while_alive
from control_plane.db.types import ForeignText

_UNDONE = text("done_at IS NULL")


class Drone(Owned, Row):
    __tablename__ = "drones"
    __table_args__ = (unique_while_alive("uq_drones_name_alive", "name"),)
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(64))
    machine_id: Mapped[str] = mapped_column(String(128))
    public_key: Mapped[str] = mapped_column(String(64), index=True)
    """Base64."""
    labels: Mapped[dict[str, str]]
    fixed_labels: Mapped[dict[str, str]]
    serves: Mapped[list[str]] = mapped_column(default=list)
    """Ids of the organizations that it serves besides its own; `*`: all."""
    concurrency: Mapped[int] = mapped_column(default=1)
    sandbox: Mapped[str] = mapped_column(String(32), default="")
    version: Mapped[str] = mapped_column(String(32), default="")
    host: Mapped[str] = mapped_column(String(255), default="")
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    """SHA-256 of its bearer token."""
    broker_password_hash: Mapped[str] = mapped_column(String(64))
    """SHA-256 of its Redis password: enough to recreate its Redis user after Redis was emptied."""
    next_public_key: Mapped[str | None] = mapped_column(String(64))
    """Base64; with the next two, the keys that replace its own as soon as it uses them. Until then, both are valid."""
    next_token_hash: Mapped[str | None] = mapped_column(String(64), index=True)
    next_broker_password_hash: Mapped[str | None] = mapped_column(String(64))
    rotation_asked_at: Mapped[datetime | None]
    """An admin asked for new keys, which the drone does not use yet."""
    keys_made_at: Mapped[datetime | None]
    """When its keys were last replaced; None: it has those of its registration."""
    revoked_public_key: Mapped[str | None] = mapped_column(String(64), index=True)
    """The last key that was revoked: it cannot be registered again."""
    keys_revoked_at: Mapped[datetime | None]
    """Set while it has no keys, because they were revoked and it has not registered again."""
    over_quota_at: Mapped[datetime | None]
    """Since when it may not write to Redis, because its keys hold more memory than its quota; None: it may."""
    join_token_id: Mapped[str | None] = mapped_column(Id)
    """The join token with which it registered last."""
    pool_id: Mapped[str | None] = mapped_column(Id, index=True)
    """The pool with whose token it registered: it is ephemeral. None: it stays."""
    user_id: Mapped[str | None] = mapped_column(Id)
    """The user who owns it, also once they were removed; None: no person."""
    registered_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]
    draining: Mapped[bool] = mapped_column(default=False)
    boot_id: Mapped[str | None] = mapped_column(String(64))
    last_seen_at: Mapped[datetime | None]
    """When the last beat arrived, by this side's clock."""
    stopped_at: Mapped[datetime | None]
    """Set by the last beat of a clean stop, cleared by any later beat."""
    beat: Mapped[dict[str, Any] | None]
    """The last beat, for display."""


class InboxMessage(Owned, Row):
    """A control message for a drone, until a beat confirms that it was acted on."""

    __tablename__ = "inbox"
    # Asked for twice a second, among the messages of the last week.
    __table_args__ = (Index("ix_inbox_undone", "drone_id", sqlite_where=_UNDONE, postgresql_where=_UNDONE),)
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    drone_id: Mapped[str] = mapped_column(Id, ForeignKey("drones.id"), index=True)
    run_id: Mapped[str | None] = mapped_column(Id)
    body: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    sent_at: Mapped[datetime | None]
    """None: not in Redis yet."""
    done_at: Mapped[datetime | None]


class RawEvent(Owned, Row):
    """A stream entry that could not be processed; kept unchanged, so that nothing is lost silently."""

    __tablename__ = "raw_events"
    id: Mapped[int] = mapped_column(Seq, primary_key=True, autoincrement=True)
    drone_id: Mapped[str] = mapped_column(Id)
    entry_id: Mapped[str] = mapped_column(String(64))
    fields: Mapped[dict[str, Any]]
    error: Mapped[str] = mapped_column(ForeignText)
    at: Mapped[datetime]
