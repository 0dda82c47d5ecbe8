"""Requests and documents of tasks, their comments, runs and timeline."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from control_plane.documents.base import Document, Request
from control_plane.documents.totals import Totals
from shared.work_order import Mode


class TaskRequest(Request):
    title: str
    description: str | None = None
    """None: the title (S-020)."""
    project: str | None = None
    """Slug; None: the organization's, else its only one."""
    assignee: str | None = None
    """An agent or `user`; None: the first agent without a boss (S-022)."""
    mode: Mode = "build"
    priority: int = Field(0, ge=-100, le=100)
    max_iterations: int | None = Field(None, ge=0)
    cost_limit: float | None = Field(None, ge=0)
    max_run_seconds: float | None = Field(None, ge=0)


class CommentRequest(Request):
    text: str


class AssignRequest(Request):
    assignee: str
    """An agent or `user`."""


class TaskRetryRequest(Request):
    assignee: str | None = None
    """None: the agent of the latest run (S-113)."""


class TaskCancelRequest(Request):
    reason: str = ""


class CommentDocument(Document):
    id: str
    author: str
    user: str
    """Who `user` was."""
    kind: str
    text: str
    run: str | None
    at: datetime
    note: str = ""
    """What follows from it, in the answer to whoever wrote it."""


class TaskRunDocument(Document):
    """One run of an agent on a task (S-026)."""

    run_id: str
    order: str
    task: str | None
    agent: str | None
    status: str
    exit_status: str | None
    reason: str
    """One sentence for people; the whole text is in the run's steps (S-084)."""
    drone: str | None
    model: str
    attempt: int
    duration_seconds: float | None
    input_tokens: int
    output_tokens: int
    tool_calls: int
    cost_usd: float | None
    started_at: datetime
    ended_at: datetime | None
    doing: str = ""
    branch: str | None = None
    head_commit: str | None = None


class TaskRunDetail(TaskRunDocument):
    steps: list[dict[str, Any]]
    """Numbered from 1, in order; outputs as the model was shown them."""


class TimelineEntry(Document):
    """A comment or a run, in order of time (S-026)."""

    kind: Literal["comment", "run"]
    at: datetime
    comment: CommentDocument | None = None
    run: TaskRunDocument | None = None


class TaskSummary(Document):
    id: str
    title: str
    organization: str
    status: str
    assignee: str
    """An agent's name, or `user`."""
    reason: str
    """Why it waits, in one sentence, and what would change that; what its run does, while it is in progress."""
    project: str
    mode: str
    priority: int
    user: str
    order: str | None
    """Of the newest run."""
    hand_offs: int
    created_at: datetime
    updated_at: datetime
    queued_at: datetime
    ended_at: datetime | None
    current_run_elapsed_seconds: float | None
    """While it is in progress (S-025)."""
    total_duration_seconds: float
    totals: Totals


class TaskDocument(TaskSummary):
    description: str
    session: str
    limits: dict[str, Any]
    branch: str | None
    """Of the newest run that changed files."""
    head_commit: str | None
    pushed: bool
    pull_request: dict[str, Any] | None
    timeline: list[TimelineEntry]
    note: str = ""
    """What an action did, and what happens next, in the answer to it."""
    stopped_run: str | None = None
    """The run that preempt or cancel asked to stop, in the answer to it."""
    warnings: list[str] = Field(default_factory=list)
