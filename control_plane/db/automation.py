"""Rows of automation: schedules, triggers and webhooks."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row, unique_while_alive
from control_plane.db.teams import TaskId
from control_plane.db.types import ForeignText, UtcDateTime


class Schedule(Owned, Row):
    """Creates a task at the times of a cron expression."""

    __tablename__ = "schedules"
    __table_args__ = (unique_while_alive("uq_schedules_name_alive", "name"),)
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(64))
    cron: Mapped[str] = mapped_column(String(255))
    timezone: Mapped[str] = mapped_column(String(64), default="UTC")
    missed: Mapped[str] = mapped_column(String(8), default="once")
    """once: one task makes up for all missed times; skip: none does."""
    task: Mapped[dict[str, Any]]
    """`task_documents.TaskRequest` without the fields that are not given; title and description may use `{{date}}`."""
    enabled: Mapped[bool] = mapped_column(default=True)
    next_at: Mapped[datetime | None] = mapped_column(UtcDateTime, index=True)
    last_at: Mapped[datetime | None]
    last_task_id: Mapped[str | None] = mapped_column(TaskId)
    last_error: Mapped[str] = mapped_column(ForeignText, default="")
    user: Mapped[str] = mapped_column(String(128), default="")
    created_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]


class Trigger(Owned, Row):
    """Creates a task from a signed request that a code host sends to `/hooks/<id>`."""

    __tablename__ = "triggers"
    __table_args__ = (unique_while_alive("uq_triggers_name_alive", "name"),)
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(64))
    kind: Mapped[str] = mapped_column(String(16))
    """github, gitlab, gitea or standard: the expected signature and headers."""
    sealed_secret: Mapped[str] = mapped_column(Text)
    events: Mapped[list[str]]
    """Names of accepted events, for example `issues.opened` or `push`; empty: all."""
    task: Mapped[dict[str, Any]]
    """As in a schedule; title and description are templates over the payload."""
    enabled: Mapped[bool] = mapped_column(default=True)
    last_at: Mapped[datetime | None]
    last_task_id: Mapped[str | None] = mapped_column(TaskId)
    last_error: Mapped[str] = mapped_column(ForeignText, default="")
    user: Mapped[str] = mapped_column(String(128), default="")
    created_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]


class TriggerDelivery(Owned, Row):
    """An accepted request: the same id again is a duplicate, and creates nothing."""

    __tablename__ = "trigger_deliveries"
    trigger_id: Mapped[str] = mapped_column(Id, ForeignKey("triggers.id"), primary_key=True)
    delivery: Mapped[str] = mapped_column(String(128), primary_key=True)
    event: Mapped[str] = mapped_column(String(128), default="")
    task_id: Mapped[str | None] = mapped_column(TaskId)
    outcome: Mapped[str] = mapped_column(ForeignText, default="")
    at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)


class Webhook(Owned, Row):
    """An address that is notified of what people wait for, signed according to Standard Webhooks."""

    __tablename__ = "webhooks"
    __table_args__ = (unique_while_alive("uq_webhooks_name_alive", "name"),)
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(64))
    url: Mapped[str] = mapped_column(Text)
    sealed_secret: Mapped[str] = mapped_column(Text)
    events: Mapped[list[str]]
    """The `shared.states.NOTICES` that it receives; empty: all."""
    enabled: Mapped[bool] = mapped_column(default=True)
    failing_since: Mapped[datetime | None]
    last_at: Mapped[datetime | None]
    last_error: Mapped[str] = mapped_column(ForeignText, default="")
    created_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]


class WebhookDelivery(Owned, Row):
    """One message to one address, until it is accepted or given up."""

    __tablename__ = "webhook_deliveries"
    __table_args__ = (Index("ix_webhook_deliveries_due", "done_at", "next_at"),)
    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    """`msg_…`: the receiver recognizes a duplicate by it."""
    webhook_id: Mapped[str] = mapped_column(Id, ForeignKey("webhooks.id"), index=True)
    event: Mapped[str] = mapped_column(String(64))
    data: Mapped[dict[str, Any]]
    attempts: Mapped[int] = mapped_column(default=0)
    status_code: Mapped[int | None]
    error: Mapped[str] = mapped_column(ForeignText, default="")
    created_at: Mapped[datetime]
    next_at: Mapped[datetime | None]
    done_at: Mapped[datetime | None]
    """Accepted or given up; if given up, `error` says why."""
