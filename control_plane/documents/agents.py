"""Requests and documents of agents."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from control_plane.documents.base import Document, Request
from control_plane.documents.organizations import Totals


class AgentRequest(Request):
    name: str
    instructions: str | None = None
    """Markdown; or else `instructions_path`."""
    instructions_path: str | None = None
    """A file in the project's repository."""
    project: str | None = None
    """Slug; None: that of the task."""
    boss: str | None = None
    max_iterations: int = Field(50, ge=0, le=100_000)
    cost_limit: float | None = Field(None, ge=0)
    provider: str | None = None
    model: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    concurrency: int = Field(0, ge=0, le=1000)


class AgentEdit(Request):
    """Only the fields that are set change; null takes boss, project, provider, model and cost_limit away (S-015)."""

    instructions: str | None = None
    instructions_path: str | None = None
    project: str | None = None
    boss: str | None = None
    max_iterations: int | None = Field(None, ge=0, le=100_000)
    cost_limit: float | None = Field(None, ge=0)
    provider: str | None = None
    model: str | None = None
    labels: dict[str, str] | None = None
    concurrency: int | None = Field(None, ge=0, le=1000)


class AgentDocument(Document):
    id: str
    name: str
    organization: str
    description: str
    instructions_path: str | None
    instructions: str | None
    """What was uploaded; null in lists, and where they lie in the repository."""
    project: str | None
    boss: str | None
    reports: list[str]
    max_iterations: int
    cost_limit: float | None
    provider: str | None
    model: str | None
    labels: dict[str, str]
    concurrency: int
    is_removed: bool
    created_at: datetime
    removed_at: datetime | None
    totals: Totals | None
    """Null in lists."""
    warnings: list[str] = Field(default_factory=list)
    """What else changed with it, one sentence each (S-014)."""
