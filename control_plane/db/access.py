"""Rows that grant access to people and drones: tokens, log-in links, browser sessions."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row


class ApiToken(Owned, Row):
    __tablename__ = "api_tokens"
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(128), default="")
    role: Mapped[str] = mapped_column(String(16))
    """admin, operator or viewer."""
    everywhere: Mapped[bool] = mapped_column(default=False)
    """It may act in every organization, and create new ones."""
    secret_hash: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class LoginLink(Owned, Row):
    """A one-use address that logs a browser in."""

    __tablename__ = "login_links"
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    secret_hash: Mapped[str] = mapped_column(String(64), unique=True)
    role: Mapped[str] = mapped_column(String(16))
    everywhere: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class WebSession(Owned, Row):
    """A logged-in browser."""

    __tablename__ = "web_sessions"
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    secret_hash: Mapped[str] = mapped_column(String(64), unique=True)
    role: Mapped[str] = mapped_column(String(16))
    everywhere: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class JoinToken(Owned, Row):
    __tablename__ = "join_tokens"
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    secret_hash: Mapped[str] = mapped_column(String(64), unique=True)
    labels: Mapped[dict[str, str]]
    """Fixed on every drone that joins with this token."""
    serves: Mapped[list[str]] = mapped_column(default=list)
    """Same as on the drones that join with it."""
    uses: Mapped[int]
    """How often it may be used in all."""
    used: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
