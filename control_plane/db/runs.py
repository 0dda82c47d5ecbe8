"""Rows of runs: the run, its steps and its blobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, String, UniqueConstraint, false, text
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row, Seq
from control_plane.db.types import ForeignText

_UNENDED = text("ended_at IS NULL")
_UNSUITABLE = text("unsuitable")
_UNSUITABLE_1 = text("unsuitable IS 1")
"""As SQLite is asked: it uses an index only for the same expression."""


class Run(Owned, Row):
    """One attempt; exists from its first event on. The only unit of cost (S-034)."""

    __tablename__ = "runs"
    __table_args__ = (
        # Totals are sums over this index alone.
        Index(
            "ix_runs_totals",
            "organization_id",
            "agent_id",
            "task_id",
            "cost_usd",
            "assumed_usd",
            "input_tokens",
            "output_tokens",
            "duration_ms",
        ),
        Index("ix_runs_unsuitable", "ended_at", sqlite_where=_UNSUITABLE_1, postgresql_where=_UNSUITABLE),
        Index("ix_runs_unended", "drone_id", sqlite_where=_UNENDED, postgresql_where=_UNENDED),
    )
    id: Mapped[str] = mapped_column(Id, ForeignKey("dispatches.id"), primary_key=True)
    order_id: Mapped[str] = mapped_column(Id, ForeignKey("orders.id"), index=True)
    drone_id: Mapped[str] = mapped_column(Id, ForeignKey("drones.id"), index=True)
    agent_id: Mapped[str | None] = mapped_column(Id)
    task_id: Mapped[str | None] = mapped_column(String(32), index=True)
    """Both as on the order, which never changes them."""
    generation: Mapped[int]
    attempt: Mapped[int]
    status: Mapped[str] = mapped_column(String(16), index=True)
    exit_status: Mapped[str | None] = mapped_column(String(32))
    reason: Mapped[str] = mapped_column(ForeignText, default="")
    late: Mapped[bool] = mapped_column(default=False)
    boot_id: Mapped[str] = mapped_column(String(64), default="")
    sandbox: Mapped[str] = mapped_column(String(32), default="")
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    beat_at: Mapped[datetime | None]
    """When a beat last named this run."""
    doing: Mapped[str] = mapped_column(ForeignText, default="")
    doing_since: Mapped[datetime | None]
    progress_at: Mapped[datetime | None]
    """When it last made progress, by this side's clock."""
    waits_for: Mapped[str] = mapped_column(String(16), default="")
    unsuitable: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Its drone cannot run the order, but another may (`shared.events.RunEnded.unsuitable`)."""
    resumed_run_id: Mapped[str | None] = mapped_column(Id)
    """The run from whose checkpoint this one resumed; its later steps left the path."""
    resumed_seq: Mapped[int] = mapped_column(default=0)
    last_seq: Mapped[int] = mapped_column(default=0)
    """Every event up to this one is stored."""
    tool_calls: Mapped[int] = mapped_column(default=0)
    input_tokens: Mapped[int] = mapped_column(default=0)
    thinking_tokens: Mapped[int] = mapped_column(default=0)
    output_tokens: Mapped[int] = mapped_column(default=0)
    cached_tokens: Mapped[int] = mapped_column(default=0, server_default="0")
    """How many of the input tokens the provider read from its cache."""
    cost_usd: Mapped[float | None] = mapped_column(default=0.0)
    """What its calls cost, as far as is known. None: a price was unknown."""
    assumed_usd: Mapped[float] = mapped_column(default=0.0, server_default="0")
    """What a lost run may have spent besides, at most: its reservations, until its drone reports what they cost."""
    prices: Mapped[dict[str, Any] | None]
    """`shared.budgets.ModelPrice` of each model that it was charged for."""
    duration_ms: Mapped[int] = mapped_column(default=0)

    @property
    def shown_cost_usd(self) -> float | None:
        """What it cost, with what is only assumed; None: a price was unknown."""
        return None if self.cost_usd is None else self.cost_usd + self.assumed_usd


class Step(Owned, Row):
    """One event of a run, as stored; unique on (run, run_seq), so that the same event counts once."""

    __tablename__ = "steps"
    __table_args__ = (
        UniqueConstraint("run_id", "run_seq", name="uq_steps_run_seq"),
        UniqueConstraint("order_id", "seq", name="uq_steps_order_seq"),
    )
    id: Mapped[int] = mapped_column(Seq, primary_key=True, autoincrement=True)
    order_id: Mapped[str] = mapped_column(Id, ForeignKey("orders.id"))
    run_id: Mapped[str] = mapped_column(Id, ForeignKey("runs.id"))
    seq: Mapped[int]
    """Counts through all runs of the order, from 1."""
    run_seq: Mapped[int]
    kind: Mapped[str] = mapped_column(String(24))
    body: Mapped[dict[str, Any]]
    at: Mapped[datetime]
    """This side's clock, at receipt."""
    drone_at: Mapped[datetime]
    late: Mapped[bool] = mapped_column(default=False)


class Blob(Owned, Row):
    """A file that a run stored: patch, bundle, log, checkpoint."""

    __tablename__ = "blobs"
    run_id: Mapped[str] = mapped_column(Id, ForeignKey("dispatches.id"), primary_key=True)
    sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    size: Mapped[int] = mapped_column(BigInteger)
    sealed: Mapped[bool] = mapped_column(default=False)
    """Encrypted at rest under the master key, as a checkpoint is."""
    created_at: Mapped[datetime]
