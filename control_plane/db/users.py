"""Rows of people: one for each person in the installation, and one for each organization that they belong to."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row


class User(Row):
    """A person. The row is deleted with the last membership; orders keep the name."""

    NAME_LENGTH = 128
    EMAIL_LENGTH = 254

    __tablename__ = "users"
    __table_args__ = (Index("uq_users_identity", "issuer", "subject", unique=True),)
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    email: Mapped[str] = mapped_column(String(EMAIL_LENGTH), unique=True)
    """In lower case."""
    name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    created_at: Mapped[datetime]
    issuer: Mapped[str | None] = mapped_column(String(255))
    """The identity provider with which the user logged in; only the same identity does so again."""
    subject: Mapped[str | None] = mapped_column(String(255))
    """The user's id there, which never changes, unlike an address."""
    disabled_at: Mapped[datetime | None]
    """While this is set, no token of the user is valid in any organization."""


class Member(Owned, Row):
    """A person's role in one organization."""

    __tablename__ = "members"
    organization_id: Mapped[str] = mapped_column(Id, ForeignKey("organizations.id"), primary_key=True)
    user_id: Mapped[str] = mapped_column(Id, ForeignKey("users.id"), primary_key=True, index=True)
    role: Mapped[str] = mapped_column(String(16))
    """admin, operator or viewer."""
    created_at: Mapped[datetime]
