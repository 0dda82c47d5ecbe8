"""Rows of people: one for each person in the installation, and one for each organization that they belong to."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row


class User(Row):
    """A person. The row is deleted with the last membership; orders keep the name."""

    NAME_LENGTH = 128
    EMAIL_LENGTH = 254

    __tablename__ = "users"
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    email: Mapped[str] = mapped_column(String(EMAIL_LENGTH), unique=True)
    """In lower case."""
    name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    created_at: Mapped[datetime]
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
