"""Rows of traces: the ends of orders whose spans are not exported yet."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, String
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row, Seq


class TraceExport(Owned, Row):
    """One end of an order, until its trace is exported; an order that runs again afterwards ends once more.

    It has what the order itself no longer tells once it runs again. No foreign keys to the order: it may be removed.
    """

    __tablename__ = "trace_exports"
    __table_args__ = (Index("ix_trace_exports_due", "given_up_at", "next_at"),)
    number: Mapped[int] = mapped_column(Seq, primary_key=True, autoincrement=True)
    order_id: Mapped[str] = mapped_column(Id)
    began_at: Mapped[datetime]
    """When it was submitted, or when a person last had it run again."""
    ended_at: Mapped[datetime]
    status: Mapped[str] = mapped_column(String(24))
    exit_status: Mapped[str | None] = mapped_column(String(32))
    run_id: Mapped[str | None] = mapped_column(Id)
    """The dispatch that it ended in; None: it was queued."""
    attempts: Mapped[int] = mapped_column(default=0)
    next_at: Mapped[datetime]
    given_up_at: Mapped[datetime | None]
