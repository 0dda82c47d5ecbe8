"""Rows of the modes that an organization defines."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, String, Text, false, text
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row


class CustomMode(Owned, Row):
    """A mode of a project or of all of an organization's projects; with the name of a built-in one, its settings."""

    __tablename__ = "modes"
    __table_args__ = (
        # NULLs are distinct in a unique index: modes of all projects have an index of their own.
        Index("uq_modes_project", "organization_id", "project_id", "name", unique=True),
        Index(
            "uq_modes_everywhere",
            "organization_id",
            "name",
            unique=True,
            sqlite_where=text("project_id IS NULL"),
            postgresql_where=text("project_id IS NULL"),
        ),
    )
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    project_id: Mapped[str | None] = mapped_column(Id, ForeignKey("projects.id"))
    """None: all projects."""
    name: Mapped[str] = mapped_column(String(16))
    text: Mapped[str] = mapped_column(Text, default="")
    """What the model is told; empty for a built-in mode."""
    tools: Mapped[list[str]] = mapped_column(default=list)
    """Empty: all tools."""
    read_only: Mapped[bool] = mapped_column(default=False, server_default=false())
    thinking: Mapped[str | None] = mapped_column(String(8))
    set_by: Mapped[str] = mapped_column(String(128), default="")
    created_at: Mapped[datetime]
