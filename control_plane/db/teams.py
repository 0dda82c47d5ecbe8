"""Rows of teams: agents, tasks and the comments between them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row, Seq
from control_plane.db.types import ForeignText

TaskId = String(32)


class Agent(Owned, Row):
    """An identity that a model takes on inside an organization (S-011). Never deleted: its cost stays attributed."""

    __tablename__ = "agents"
    __table_args__ = (UniqueConstraint("organization_id", "name", name="uq_agents_name"),)
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(64))
    instructions: Mapped[str | None] = mapped_column(Text)
    """Uploaded Markdown; None if the file is in the project's repository."""
    instructions_path: Mapped[str | None] = mapped_column(String(1024))
    """A file in the repository, read from its default branch by every run."""
    project_id: Mapped[str | None] = mapped_column(Id, ForeignKey("projects.id"))
    """The repository of `instructions_path`; None: the task's."""
    boss_id: Mapped[str | None] = mapped_column(Id, ForeignKey("agents.id"))
    max_iterations: Mapped[int] = mapped_column(default=50)
    cost_limit: Mapped[float | None]
    """USD for one run; None: as for any order."""
    provider_id: Mapped[str | None] = mapped_column(Id, ForeignKey("providers.id"))
    model: Mapped[str | None] = mapped_column(String(255))
    """Overrides the provider's model."""
    reviewer_id: Mapped[str | None] = mapped_column(Id)
    """The provider whose model reviews its changes; None: the project's."""
    labels: Mapped[dict[str, str]]
    """What a drone must have to run it."""
    concurrency: Mapped[int] = mapped_column(default=0)
    """Tasks of this agent in progress at once; 0: no separate limit."""
    limits: Mapped[dict[str, Any]] = mapped_column(default=dict, server_default="{}")
    """Its further limits, besides `max_iterations` and `cost_limit` (`shared.limits`)."""
    thinking: Mapped[str | None] = mapped_column(String(8))
    """The thinking level of its runs; None: see `control_plane.orders.run_settings`."""
    description: Mapped[str] = mapped_column(ForeignText, default="")
    """Written by a model from the instructions (S-012), for the roster; empty until then."""
    created_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]


class Task(Owned, Row):
    """A thread of comments that agents and people work on by hand-offs."""

    __tablename__ = "tasks"
    __table_args__ = (
        Index("ix_tasks_queue", "organization_id", "status", "priority", "queued_at"),
        Index("ix_tasks_listed", "organization_id", "number"),
    )
    id: Mapped[str] = mapped_column(TaskId, primary_key=True)
    """`PAYM-0001`."""
    number: Mapped[int] = mapped_column(Integer)
    title: Mapped[str] = mapped_column(Text)
    description: Mapped[str] = mapped_column(Text)
    status: Mapped[str] = mapped_column(String(16))
    assignee_id: Mapped[str | None] = mapped_column(Id, ForeignKey("agents.id"), index=True)
    """None: the user."""
    project_id: Mapped[str] = mapped_column(Id, ForeignKey("projects.id"))
    session_id: Mapped[str] = mapped_column(Id, ForeignKey("sessions.id"))
    """Its workspace, and the line of its branches: every run continues where the previous one stopped."""
    mode: Mapped[str] = mapped_column(String(16), default="build")
    """As it was created; its session has the mode of the next run."""
    priority: Mapped[int] = mapped_column(default=0)
    limits: Mapped[dict[str, Any]]
    """Fields of `shared.work_order.Limits` that apply to all of its runs and override the agent's."""
    order_id: Mapped[str | None] = mapped_column(Id)
    """The newest run's order; only its reports move the task."""
    hand_offs: Mapped[int] = mapped_column(default=0)
    """From agent to agent since a person last intervened."""
    user: Mapped[str] = mapped_column(String(128), default="")
    user_id: Mapped[str | None] = mapped_column(Id)
    """As of an order: the orders of its runs belong to the same person."""
    queued_at: Mapped[datetime]
    """Its place in the queue: oldest first (S-102)."""
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    """When it became done or canceled."""


class Comment(Owned, Row):
    """One entry of a task's thread; append-only (S-040)."""

    __tablename__ = "comments"
    __table_args__ = (Index("ix_comments_thread", "task_id", "id"),)
    id: Mapped[int] = mapped_column(Seq, primary_key=True, autoincrement=True)
    task_id: Mapped[str] = mapped_column(TaskId, ForeignKey("tasks.id"))
    author: Mapped[str] = mapped_column(String(64))
    """An agent's name, `user` or `system`."""
    agent_id: Mapped[str | None] = mapped_column(Id, ForeignKey("agents.id"))
    """The author; of a system comment, the agent whose run could not start."""
    user: Mapped[str] = mapped_column(String(128), default="")
    """The name of that user: of the person, else of the token."""
    kind: Mapped[str] = mapped_column(String(24), default="comment")
    """comment; for the system, the kind of note: see `control_plane.teams.system_notes`."""
    text: Mapped[str] = mapped_column(ForeignText)
    run_id: Mapped[str | None] = mapped_column(Id)
    """The run that wrote it, or that it is about."""
    at: Mapped[datetime]
