"""Rows of the questions that a run asks a person."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row, Seq
from control_plane.db.types import ForeignText

_OPEN = text("closed_at IS NULL")


class Wait(Owned, Row):
    """A run waits for a person: for approval of a call, or for an answer of another kind.

    The first answer counts. The wait stays open until the run itself reports the decision or, of a suspended run, until
    its order continues.
    """

    __tablename__ = "waits"
    __table_args__ = (
        UniqueConstraint("run_id", "subject", name="uq_waits_subject"),
        Index("ix_waits_open", "run_id", sqlite_where=_OPEN, postgresql_where=_OPEN),
    )
    number: Mapped[int] = mapped_column(Seq, primary_key=True, autoincrement=True)
    order_id: Mapped[str] = mapped_column(Id, ForeignKey("orders.id"), index=True)
    run_id: Mapped[str] = mapped_column(Id)
    subject: Mapped[str] = mapped_column(ForeignText)
    """What the question is about, unique in the run: the id of a call, or `delivery`."""
    kind: Mapped[str] = mapped_column(String(16))
    """`shared.events.WaitKind`."""
    text: Mapped[str] = mapped_column(ForeignText)
    choices: Mapped[list[str]]
    """Empty: any text is an answer."""
    default: Mapped[str | None] = mapped_column(ForeignText)
    """The answer that counts after the deadline."""
    deadline: Mapped[datetime | None]
    role: Mapped[str] = mapped_column(String(16))
    """The minimum role that may answer."""
    details: Mapped[dict[str, Any]]
    """Further fields of the kind: tool and reason of a call."""
    asked_at: Mapped[datetime]
    answer: Mapped[str | None] = mapped_column(ForeignText)
    comment: Mapped[str] = mapped_column(ForeignText, default="")
    answered_by: Mapped[str | None] = mapped_column(String(128))
    """Empty: a person without a name."""
    answered_at: Mapped[datetime | None]
    decided_by: Mapped[str | None] = mapped_column(String(16))
    """`person`, `clock` or `interruption`, once it is decided."""
    suspend_asked_at: Mapped[datetime | None]
    """When the run was asked to end and leave the wait to a later one."""
    suspended_at: Mapped[datetime | None]
    """When the run ended and left it."""
    closed_at: Mapped[datetime | None]
    """Neither the run nor, if it was suspended, a later one waits any longer."""
