"""Rows of money: budgets, what counts in each of their periods, the blocks reserved for runs, and prices.

Amounts are whole nanodollars (10⁻⁹ USD), so that sums are exact.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, String, text
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row, Seq

_ALIVE = text("removed_at IS NULL")


class Budget(Owned, Row):
    """An upper bound on what the runs of one thing may cost in a period."""

    __tablename__ = "budgets"
    __table_args__ = (
        Index(
            "uq_budgets_alive",
            "organization_id",
            "kind",
            "target_id",
            "per",
            unique=True,
            sqlite_where=_ALIVE,
            postgresql_where=_ALIVE,
        ),
    )
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    """`shared.budgets.BudgetKind`: whose runs count."""
    target_id: Mapped[str] = mapped_column(Id)
    """The id of that project, agent, user, organization or session."""
    per: Mapped[str] = mapped_column(String(8))
    """`shared.budgets.Per`."""
    limit_nusd: Mapped[int] = mapped_column(BigInteger)
    zone: Mapped[str] = mapped_column(String(64), default="UTC")
    """The time zone in which its days and months begin."""
    set_by: Mapped[str] = mapped_column(String(128), default="")
    created_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]


class BudgetPeriod(Row):
    """What counts in one period of a budget: kept up to date with the blocks, so that a check reads one row."""

    __tablename__ = "budget_periods"
    budget_id: Mapped[str] = mapped_column(Id, ForeignKey("budgets.id"), primary_key=True)
    begins_at: Mapped[datetime] = mapped_column(primary_key=True)
    reserved_nusd: Mapped[int] = mapped_column(BigInteger, default=0)
    spent_nusd: Mapped[int] = mapped_column(BigInteger, default=0)
    warned_at: Mapped[datetime | None]
    """When people were warned that little is left."""
    refused_at: Mapped[datetime | None]
    """When a model call was first refused because too little was left."""
    exhausted_at: Mapped[datetime | None]
    """When people were told that it is used up."""


class SpendingBlock(Owned, Row):
    """Money reserved for the calls of one run. The run uses its blocks in the order of their ids.

    A block counts on the day on which it was granted: `granted_nusd` while it is open, then `spent_nusd`.
    """

    __tablename__ = "spending_blocks"
    __table_args__ = (Index("ix_spending_blocks_granted", "organization_id", "granted_at"),)
    id: Mapped[int] = mapped_column(Seq, primary_key=True, autoincrement=True)
    run_id: Mapped[str] = mapped_column(Id, ForeignKey("dispatches.id"), index=True)
    order_id: Mapped[str] = mapped_column(Id, ForeignKey("orders.id"), index=True)
    project_id: Mapped[str] = mapped_column(Id, index=True)
    session_id: Mapped[str] = mapped_column(Id, index=True)
    agent_id: Mapped[str | None] = mapped_column(Id, index=True)
    user_id: Mapped[str | None] = mapped_column(Id, index=True)
    drone_id: Mapped[str] = mapped_column(Id)
    model: Mapped[str] = mapped_column(String(255))
    granted_at: Mapped[datetime]
    granted_nusd: Mapped[int] = mapped_column(BigInteger)
    spent_nusd: Mapped[int] = mapped_column(BigInteger, default=0)
    """Of a run that is lost, all that it was granted, until it reports."""
    reported_nusd: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    """What the run itself reported as spent. It never falls."""
    closed_at: Mapped[datetime | None]
    """From then on nothing is reserved: it is used up, or its run has ended."""


class Price(Owned, Row):
    """What a model costs in this organization, in place of LiteLLM's list."""

    __tablename__ = "prices"
    __table_args__ = (
        Index("uq_prices_alive", "organization_id", "model", unique=True, sqlite_where=_ALIVE, postgresql_where=_ALIVE),
    )
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    model: Mapped[str] = mapped_column(String(255))
    input_usd: Mapped[float | None]
    """USD per million tokens, as all of these. None: from LiteLLM's list."""
    output_usd: Mapped[float | None]
    cache_read_usd: Mapped[float | None]
    cache_write_usd: Mapped[float | None]
    discount_percent: Mapped[float] = mapped_column(default=0.0)
    """Taken off all of the model's prices."""
    set_by: Mapped[str] = mapped_column(String(128), default="")
    created_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]
