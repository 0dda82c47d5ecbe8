"""Rows that grant access to people and drones: tokens, log-in links, browser sessions."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row, unique_while_alive


class ApiToken(Owned, Row):
    __tablename__ = "api_tokens"
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(128), default="")
    role: Mapped[str] = mapped_column(String(16))
    """admin, operator or viewer."""
    everywhere: Mapped[bool] = mapped_column(default=False)
    """It may act in every organization, and create new ones."""
    secret_hash: Mapped[str] = mapped_column(String(64), unique=True)
    made_by: Mapped[str | None] = mapped_column(Id)
    """The API token with which it was created. No foreign key: its organization may be removed."""
    user_id: Mapped[str | None] = mapped_column(Id)
    """The user it belongs to: valid while they are a member of its organization, with at most their role there. None:
    it belongs to no person, but to a script. No foreign key: a revoked token outlives its user.
    """
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class LoginLink(Owned, Row):
    """A one-use address that logs a browser in."""

    __tablename__ = "login_links"
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    token_id: Mapped[str | None] = mapped_column(Id)
    """As of a session."""
    secret_hash: Mapped[str] = mapped_column(String(64), unique=True)
    role: Mapped[str] = mapped_column(String(16))
    everywhere: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class WebSession(Owned, Row):
    """A logged-in browser."""

    ADDRESS_LENGTH = 64

    __tablename__ = "web_sessions"
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    token_id: Mapped[str | None] = mapped_column(Id)
    """The API token that it comes from, with which it ends.
    No foreign key: the token may belong to another organization, which may be removed.
    """
    user_id: Mapped[str | None] = mapped_column(Id)
    """The user who logged in with the identity provider, without an API token. A row with neither is not accepted."""
    secret_hash: Mapped[str] = mapped_column(String(64), unique=True)
    role: Mapped[str] = mapped_column(String(16))
    everywhere: Mapped[bool] = mapped_column(default=False)
    browser_key_hash: Mapped[str | None] = mapped_column(String(64))
    """Of the key that the browser keeps besides its cookie; without one, the session only reads."""
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
    address: Mapped[str] = mapped_column(String(ADDRESS_LENGTH), default="")
    """The client's network address at that time."""
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
    made_by: Mapped[str | None] = mapped_column(Id)
    """As on an API token; it is revoked together with that one."""
    user_id: Mapped[str | None] = mapped_column(Id)
    """The user who owns it and the drones that join with it; None: no person. No foreign key, as on an API token."""
    pool_id: Mapped[str | None] = mapped_column(Id)
    """The pool whose token it is or was; None: it is for drones that stay."""
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]


class Pool(Owned, Row):
    """Ephemeral drones that join with one token. Their labels and their owner are those of the token."""

    __tablename__ = "pools"
    __table_args__ = (unique_while_alive("uq_pools_name_alive", "name"),)
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(64))
    max_drones: Mapped[int]
    """How many of its drones may be there at the same time."""
    token_id: Mapped[str] = mapped_column(Id)
    """The join token that is valid now; earlier ones are revoked."""
    created_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]
