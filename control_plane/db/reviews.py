"""Rows of review comments: what users say about lines of an order's result, and what the agent answers."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row, Seq
from control_plane.db.types import ForeignText


class ReviewComment(Owned, Row):
    """A comment on a file or some of its lines, as the diff of an order shows them."""

    __tablename__ = "review_comments"
    number: Mapped[int] = mapped_column(Seq, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(Id, unique=True)
    """Its first characters are unique in the organization: messages and commands use them."""
    order_id: Mapped[str] = mapped_column(Id, ForeignKey("orders.id"), index=True)
    """The order whose result it is about."""
    author: Mapped[str] = mapped_column(String(12), default="")
    """`lookups.users.author_id`: until it is sent, only its author sees it."""
    user: Mapped[str] = mapped_column(String(128))
    parent_id: Mapped[str | None] = mapped_column(Id)
    """The comment that it replies to."""
    commit: Mapped[str | None] = mapped_column(String(64))
    """The head commit of the result that the author saw."""
    path: Mapped[str] = mapped_column(ForeignText)
    side: Mapped[str] = mapped_column(String(4))
    start_line: Mapped[int | None]
    """None: the whole file."""
    end_line: Mapped[int | None]
    quote: Mapped[str] = mapped_column(ForeignText)
    """The lines, each with its sign in the diff."""
    text: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    sent_at: Mapped[datetime | None]
    sent_order_id: Mapped[str | None] = mapped_column(Id, ForeignKey("orders.id"), index=True)
    """The order whose agent received it: the same one while it ran, else the next turn of its session.

    Of a pending comment: an order that has it and ended before its agent could answer.
    """
    message_number: Mapped[int | None] = mapped_column(BigInteger, index=True)
    """The message to a running order that contains it."""
    verdict: Mapped[str | None] = mapped_column(String(8))
    """`shared.events.ReviewVerdict`."""
    answer: Mapped[str | None] = mapped_column(ForeignText)
    answered_at: Mapped[datetime | None]
    answer_order_id: Mapped[str | None] = mapped_column(Id, index=True)
    answer_run_id: Mapped[str | None] = mapped_column(Id)
    answer_seq: Mapped[int | None]
    """The step of that run. If a later run continues from before it, the answer counts no more."""
    done_commit: Mapped[str | None] = mapped_column(String(64))
    """Of a comment that is done: the head commit of the run's work."""

    @property
    def status(self) -> str:
        """pending, sent, done, declined or asks."""
        return self.verdict or ("sent" if self.sent_at is not None else "pending")
