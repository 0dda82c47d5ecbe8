"""Requests and documents of projects."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from control_plane.documents.base import Document, Request
from shared.trailers import Trailer

PullRequests = Literal["never", "ready", "open"]


class ProjectRequest(Request):
    slug: str
    git_url: str = Field(repr=False)
    name: str | None = None
    branch: str | None = None
    setup: list[str] = Field(default_factory=list)
    verify: list[str] = Field(default_factory=list)
    provider: str | None = None
    budget_usd_day: float | None = Field(None, ge=0)
    pull_requests: PullRequests = "never"
    """What becomes of an order that succeeded and was pushed: nothing, a title and a text, or a pull request."""
    trailers: list[Trailer] = Field(default_factory=list)
    """Which trailers its commits and pull requests carry; none: Fleet-Order."""


class ProjectEdit(Request):
    """Only the fields that are set change."""

    git_url: str | None = Field(None, repr=False)
    name: str | None = None
    branch: str | None = None
    setup: list[str] | None = None
    verify: list[str] | None = None
    provider: str | None = None
    budget_usd_day: float | None = Field(None, ge=0)
    pull_requests: PullRequests | None = None
    trailers: list[Trailer] | None = None


class ProjectDocument(Document):
    id: str
    slug: str
    name: str
    git_url: str
    """Without a password."""
    branch: str | None
    setup: list[str]
    verify: list[str]
    provider: str | None
    budget_usd_day: float | None
    pull_requests: str
    trailers: list[str]
    created_at: datetime
