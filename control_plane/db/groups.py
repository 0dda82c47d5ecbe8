"""Rows of groups of orders that were submitted together: graphs, races and batches."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row


class OrderGroup(Owned, Row):
    """Orders submitted together. Its state is that of its orders, which name it."""

    __tablename__ = "order_groups"
    __table_args__ = (
        UniqueConstraint("organization_id", "idempotency_key", name="uq_order_groups_idempotency"),
        Index("ix_order_groups_listed", "organization_id", "kind", "created_at"),
    )
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    """`graph`, `race` or `batch`."""
    name: Mapped[str] = mapped_column(String(255))
    user: Mapped[str] = mapped_column(String(128), default="")
    """Who submitted it, as named at that time: a person, else the token."""
    user_id: Mapped[str | None] = mapped_column(Id)
    idempotency_key: Mapped[str | None] = mapped_column(String(255))
    request_hash: Mapped[str | None] = mapped_column(String(64))
    created_at: Mapped[datetime]

    pick: Mapped[str | None] = mapped_column(String(8))
    """How a race is or was decided: `shared.races.Pick`. This and the next four columns are those of races."""
    rubric: Mapped[str | None] = mapped_column(Text)
    """What a judging order looks at."""
    base_commit: Mapped[str | None] = mapped_column(String(64))
    """What all of its orders start from, once the first of them has found it."""
    winner_id: Mapped[str | None] = mapped_column(Id)
    """The order whose work is taken."""
    judge_id: Mapped[str | None] = mapped_column(Id)
    """The order that judges."""

    parallel: Mapped[int | None]
    """Maximum number of orders of a batch that are under way. The columns from here on are those of batches."""
    begun_at: Mapped[datetime | None]
    """When all rows were there, or were last retried; no order is submitted before."""
    canceled_at: Mapped[datetime | None]
    """No further order is submitted."""
