"""Requests and documents of organizations, their totals and their status."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from control_plane.declarations.agents import AgentNode
from control_plane.documents.base import Document, Request
from control_plane.documents.totals import Totals


class OrganizationRequest(Request):
    name: str
    description: str = ""
    project: str | None = None
    """Slug of the project where tasks work that name none; it must be there already, so at first none is."""
    concurrency: int = Field(4, ge=0, le=1000)
    max_hand_offs: int = Field(20, ge=0, le=10_000)


class OrganizationEdit(Request):
    """Only the fields that are set change; the name never does (S-005)."""

    description: str | None = None
    project: str | None = None
    concurrency: int | None = Field(None, ge=0, le=1000)
    max_hand_offs: int | None = Field(None, ge=0, le=10_000)


class OrganizationDocument(Document):
    id: str
    name: str
    description: str
    acronym: str
    project: str | None
    concurrency: int
    max_hand_offs: int
    paused: bool
    paused_at: datetime | None
    agent_count: int
    tasks: dict[str, int]
    """How many are in each state."""
    totals: Totals
    created_at: datetime
    agents: list[AgentNode] | None = None
    """The tree; null in lists."""
    warnings: list[str] = Field(default_factory=list)


class StatusDocument(Document):
    """`fleet status` (S-122)."""

    server: str
    version: str
    organization: str
    paused: bool
    drones: dict[str, int]
    """How many there are of each status."""
    orders: dict[str, int]
    """Of those that have not ended, how many are in each state."""
    tasks: dict[str, int]
    active_runs: int
    max_concurrency: int
    totals: Totals
