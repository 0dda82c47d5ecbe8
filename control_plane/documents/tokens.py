"""Requests and documents of join tokens and API tokens."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from control_plane.documents.base import Document, Request


class JoinTokenRequest(Request):
    expires_s: int = Field(3600, ge=1, le=30 * 24 * 3600)
    uses: int = Field(1, ge=1, le=10_000)
    labels: dict[str, str] = Field(default_factory=dict)
    serves: list[str] = Field(default_factory=list)
    """Organizations that its drones work for beside their own, by name; `*`: all."""


class ApiTokenRequest(Request):
    role: str
    name: str = ""
    expires_s: int | None = Field(None, ge=1, le=10 * 366 * 24 * 3600)
    everywhere: bool = False
    """It may act in every organization."""


class JoinTokenDocument(Document):
    id: str
    token: str | None
    """Shown once, when it is created."""
    labels: dict[str, str]
    serves: list[str]
    """As on its drones."""
    uses: int
    used: int
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None


class ApiTokenDocument(Document):
    id: str
    token: str | None
    """Shown once, when it is created."""
    name: str
    role: str
    everywhere: bool
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None
