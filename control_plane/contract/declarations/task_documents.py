"""Requests and documents of tasks, their comments, runs and timeline."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field

from control_plane.contract.declarations.operation import About
from control_plane.contract.documents.base import Document, ModeName, Request
from control_plane.contract.documents.totals import Totals
from shared.states import TaskStatus

MAX_LISTED = 1000
TASK_ID = About("task", "The task's id, for example PAYM-0001.", source="tasks:id", metavar="TASK")
RUN_ID = About("run", "The run's id.", metavar="RUN")


class TaskRequest(Request):
    title: Annotated[str, About("title", "What to do, in one line.")]
    description: Annotated[
        str | None,
        About("description", "Description for the agents, who read it before they begin.", absent="the title"),
    ] = None
    """S-020."""
    project: Annotated[
        str | None,
        About(
            "project",
            "Short name of the project to work on.",
            absent="the organization's, else its only one",
            source="projects:slug",
        ),
    ] = None
    assignee: Annotated[
        str | None,
        About(
            "assignee",
            "Name of an agent, or `user`.",
            absent="the first agent by name without a boss",
            source="agents:name|user",
        ),
    ] = None
    """S-022."""
    mode: Annotated[
        ModeName,
        About("mode", "plan (read-only), build, test, ship, develop or one of your own.", source="modes:name"),
    ] = "build"
    priority: Annotated[int, About("priority", "-100 to 100; higher starts first.")] = Field(0, ge=-100, le=100)
    max_iterations: Annotated[
        int | None, About("step limit", "Maximum steps of each run; 0 = unlimited.", absent="the agent's")
    ] = Field(None, ge=0)
    cost_limit: Annotated[
        float | None,
        About("cost limit", "Maximum cost of each run in USD; 0 = unlimited.", unit="USD", absent="the agent's"),
    ] = Field(None, ge=0)
    max_run_seconds: Annotated[
        float | None, About("time limit", "Time limit of each run in seconds; 0 = unlimited.", absent="1800")
    ] = Field(None, ge=0)


class CommentRequest(Request):
    text: Annotated[str, About("text", "The comment; @name hands the task over.", input="stdin")]


class AssignRequest(Request):
    assignee: Annotated[
        str, About("assignee", "Name of an agent, or `user`.", source="agents:name|user", metavar="AGENT")
    ]
    """An agent or `user`."""


class TaskRetryRequest(Request):
    assignee: Annotated[
        str | None,
        About(
            "assignee",
            "The agent to assign.",
            absent="the agent of the latest run",
            source="agents:name",
            flag="--assign --assignee",
        ),
    ] = None
    """None: the agent of the latest run (S-113)."""


class TaskCancelRequest(Request):
    reason: Annotated[str, About("reason", "The reason, recorded in the task's thread.")] = ""


class TaskFilter(Request):
    status: Annotated[TaskStatus | None, About("status", "Only tasks with this status.", absent="all")] = None
    assignee: Annotated[
        str | None,
        About("assignee", "Only tasks assigned to this agent, or to `user`.", absent="all", source="agents:name|user"),
    ] = None
    project: Annotated[
        str | None, About("project", "Only tasks of this project (slug).", absent="all", source="projects:slug")
    ] = None
    text: Annotated[
        str | None, About("text", "Only tasks whose title or description contain all of these words.", absent="all")
    ] = Field(None, min_length=1, max_length=200)
    limit: Annotated[int, About("limit", "Maximum number of results, newest first.")] = Field(50, ge=1, le=MAX_LISTED)


class TimelineFilter(Request):
    since: Annotated[AwareDatetime | None, About("since", "Omit comments written before this time.", absent="all")] = (
        None
    )


class CommentDocument(Document):
    id: str
    author: str
    user: str
    """The identity of `user`."""
    kind: str
    text: str
    run: str | None
    at: datetime
    note: str = ""
    """What follows from it, in the answer to its author."""


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
    """A comment or a run, in chronological order (S-026)."""

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
    """Why it waits and what would change that, in one sentence; while it is in progress, what its run is doing."""
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
    """Set while it is in progress (S-025)."""
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
    """What an action did and what happens next; only in the answer to that action."""
    stopped_run: str | None = None
    """The run that preempt or cancel asked to stop; only in the answer to that action."""
    warnings: list[str] = Field(default_factory=list)
