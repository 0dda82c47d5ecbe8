"""Rows of project memory: short notes that agents propose, and users keep."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row
from control_plane.db.types import ForeignText


class MemoryNote(Owned, Row):
    """A note for later orders. It is in their prompts only while its state is `kept`."""

    __tablename__ = "memory_notes"
    __table_args__ = (Index("ix_memory_notes_listed", "organization_id", "state", "created_at"),)
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    project_id: Mapped[str | None] = mapped_column(Id, ForeignKey("projects.id"), index=True)
    """None: it is for all projects of the organization."""
    text: Mapped[str] = mapped_column(ForeignText)
    why: Mapped[str] = mapped_column(ForeignText, default="")
    state: Mapped[str] = mapped_column(String(12))
    """`control_plane.contract.declarations.memory.MemoryState`."""
    order_id: Mapped[str | None] = mapped_column(Id, ForeignKey("orders.id"), index=True)
    """The order whose agent proposed it; None: a user wrote it."""
    user_id: Mapped[str | None] = mapped_column(Id)
    """The user to whom that order belongs."""
    created_at: Mapped[datetime]
    decided_at: Mapped[datetime | None]
    decided_by: Mapped[str | None] = mapped_column(String(128))
    """Who kept or refused it."""
