"""Rows of stacked sessions: the work of one builds on that of another."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row

_DUE = text("due")


class Stack(Owned, Row):
    """A session that had an order which starts after one of another session, the lower one."""

    __tablename__ = "stacks"
    __table_args__ = (
        UniqueConstraint("session_id", "lower_id", name="uq_stacks_sessions"),
        Index("ix_stacks_due", "due", sqlite_where=_DUE, postgresql_where=_DUE),
    )
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    session_id: Mapped[str] = mapped_column(Id, ForeignKey("sessions.id"), index=True)
    lower_id: Mapped[str] = mapped_column(Id, ForeignKey("sessions.id"), index=True)
    order_id: Mapped[str] = mapped_column(Id, ForeignKey("orders.id"))
    """The order of the lower session that the session last started after."""
    due: Mapped[bool] = mapped_column(default=False)
    """The lower session has had other work since."""
    created_at: Mapped[datetime]
