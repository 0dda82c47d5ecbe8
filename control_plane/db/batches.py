"""Rows of batches: what each order of a batch is submitted with, and whether it was."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, Index, Integer, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row
from control_plane.db.types import ForeignText


class BatchRow(Owned, Row):
    """One row of a batch. Its batch is an `OrderGroup` of the kind `batch`."""

    __tablename__ = "batch_rows"
    __table_args__ = (
        UniqueConstraint("batch_id", "key", name="uq_batch_rows_key"),
        # The supervisor looks for the next rows that wait.
        Index("ix_batch_rows_state", "batch_id", "state", "number"),
        Index("ix_batch_rows_order_id", "order_id"),
    )
    batch_id: Mapped[str] = mapped_column(Id, ForeignKey("order_groups.id"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    """Its place in the file, from 1."""
    key: Mapped[str] = mapped_column(String(200))
    """Its id in the file."""
    digest: Mapped[str] = mapped_column(String(64))
    """SHA-256 of `request`, by which a changed row is recognized."""
    request: Mapped[dict[str, Any]]
    """`declarations.batches.BatchRowRequest`, without defaults."""
    state: Mapped[str] = mapped_column(String(12))
    """`waiting`: its order is to be submitted, or retried if it has one. `submitted`: the state of the order counts.
    `refused`: it could not be submitted. `canceled`: the batch was canceled before.
    """
    order_id: Mapped[str | None] = mapped_column(Id)
    problem: Mapped[str | None] = mapped_column(ForeignText)
    """Why it could not be submitted or retried."""
