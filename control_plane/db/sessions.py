"""Rows of sessions and the entries of their trees."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String, Text, true
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row, Seq


class ChatSession(Owned, Row):
    """A chat: its turns and changes are entries of a tree, and the next turn continues from `leaf_id`."""

    __tablename__ = "sessions"
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    project_id: Mapped[str] = mapped_column(Id, ForeignKey("projects.id"))
    name: Mapped[str] = mapped_column(String(255))
    """Given by a user; empty: none."""
    title: Mapped[str] = mapped_column(Text, default="", server_default="")
    """Written by a model from the first prompt; empty: none. It counts while there is no name."""
    mode: Mapped[str] = mapped_column(String(16))
    approve: Mapped[str | None] = mapped_column(String(16))
    """The approval mode of its orders that set none."""
    thinking: Mapped[str | None] = mapped_column(String(8))
    """The thinking level of its orders that set none; None: the provider's."""
    limits: Mapped[dict[str, Any]] = mapped_column(default=dict, server_default="{}")
    """The limits of its orders that set none (`shared.limits`)."""
    allow: Mapped[list[str]] = mapped_column(default=list)
    """Commands that need no approval in this session."""
    restack: Mapped[bool] = mapped_column(default=True, server_default=true())
    """It is brought up to date when a session that it builds on has new work."""
    leaf_id: Mapped[str | None] = mapped_column(Id)
    """The entry that the next turn continues from; None at the root."""
    compact: Mapped[str | None] = mapped_column(Text)
    """A compaction is due before the next turn, with these instructions."""
    left_leaf_id: Mapped[str | None] = mapped_column(Id)
    """The last entry of a branch that was left: the next turn begins with its summary."""
    forked_from_id: Mapped[str | None] = mapped_column(Id)
    task_id: Mapped[str | None] = mapped_column(String(32))
    """The task whose workspace this is; its turns are its agents' runs, and people write comments instead."""
    user_id: Mapped[str | None] = mapped_column(Id)
    """The user who started it, also once they were removed; None: no person."""
    created_at: Mapped[datetime]


class SessionEntry(Owned, Row):
    """One entry of a session's tree, never changed. A fork's first entry has its parent in the original session."""

    __tablename__ = "session_entries"
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    number: Mapped[int] = mapped_column(Seq, index=True)
    """Order of writing in the installation."""
    session_id: Mapped[str] = mapped_column(Id, ForeignKey("sessions.id"), index=True)
    parent_id: Mapped[str | None] = mapped_column(Id)
    kind: Mapped[str] = mapped_column(String(24))
    """turn, compaction, leaf, label, model_change, mode_change or name."""
    order_id: Mapped[str | None] = mapped_column(Id, ForeignKey("orders.id"), index=True)
    """For a turn: its messages are the steps of the order's run."""
    data: Mapped[dict[str, Any]]
    at: Mapped[datetime]
