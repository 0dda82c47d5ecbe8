"""Requests and documents of schedules and triggers."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from control_plane.documents.base import Document, Request
from control_plane.documents.tasks import TaskRequest


class ScheduleRequest(Request):
    name: str
    cron: str
    timezone: str = "UTC"
    missed: Literal["once", "skip"] = "once"
    task: TaskRequest


class ScheduleEdit(Request):
    cron: str | None = None
    timezone: str | None = None
    missed: Literal["once", "skip"] | None = None
    task: TaskRequest | None = None
    enabled: bool | None = None


class ScheduleDocument(Document):
    id: str
    name: str
    cron: str
    timezone: str
    missed: str
    task: dict[str, Any]
    enabled: bool
    next_at: datetime | None
    """Null while it is disabled."""
    upcoming: list[datetime]
    """The next few, by which a person sees whether the line says what they mean."""
    last_at: datetime | None
    last_task: str | None
    last_error: str
    created_at: datetime


TriggerKind = Literal["github", "gitlab", "gitea", "standard"]


class TriggerRequest(Request):
    name: str
    kind: TriggerKind
    secret: str | None = Field(None, repr=False)
    """None: one is made, and shown once."""
    events: list[str] = Field(default_factory=list)
    """Not given: those that the kind is mostly wanted for; an empty list: all."""
    task: TaskRequest = Field(default_factory=lambda: TaskRequest(title=""))
    """Title and description are templates; an empty title, and no description: the kind's own."""


class TriggerEdit(Request):
    secret: str | None = Field(None, repr=False)
    events: list[str] | None = None
    task: TaskRequest | None = None
    enabled: bool | None = None


class TriggerDocument(Document):
    id: str
    name: str
    kind: str
    url: str
    """Where the code host sends its requests."""
    secret: str | None
    """Shown once, when it is made."""
    events: list[str]
    task: dict[str, Any]
    enabled: bool
    last_at: datetime | None
    last_task: str | None
    last_error: str
    created_at: datetime


class HookAnswer(Document):
    """What the sender of a hook is told."""

    outcome: Literal["task", "ignored", "repeated"]
    task: str | None
    why: str
