"""Rows of texts that users typed and have not sent yet, and of the keys of forms that were sent."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Owned, Row, Seq


class SavedDraft(Owned, Row):
    """The newest text of one author on one subject."""

    __tablename__ = "drafts"
    __table_args__ = (UniqueConstraint("organization_id", "author", "subject", name="uq_drafts_subject"),)
    number: Mapped[int] = mapped_column(Seq, primary_key=True, autoincrement=True)
    author: Mapped[str] = mapped_column(String(12))
    """The id of the user; of the token, if it belongs to no user."""
    subject: Mapped[str] = mapped_column(String(100))
    """What the text is for: `order:ID:message`."""
    text: Mapped[str] = mapped_column(Text)
    version: Mapped[int] = mapped_column(BigInteger)
    """Grows with each change, also when the subject's draft was deleted in between."""
    updated_at: Mapped[datetime] = mapped_column(index=True)


SENT = "sent:"
"""The subject of such a row, before the key of a form that was sent; it has no text."""
UNSENT = SavedDraft.subject.not_like(f"{SENT}%")
