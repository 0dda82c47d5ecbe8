"""Read tasks: the list, and one task with its timeline. The list takes the same few queries for any number of tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, func, or_, select
from sqlalchemy.orm import Session, load_only

from control_plane.contract.declarations import tasks as declared
from control_plane.contract.declarations.task_documents import (
    CommentDocument,
    TaskDocument,
    TaskRunDocument,
    TaskSummary,
    TimelineEntry,
)
from control_plane.contract.documents.base import USER
from control_plane.contract.documents.totals import Totals
from control_plane.contract.validation.checks import shown, unknown
from control_plane.core import Caller, Core
from control_plane.core.lookups.projects import find_project
from control_plane.core.lookups.tasks import find_task
from control_plane.core.lookups.texts import begins, contains_words
from control_plane.db.orders import Order
from control_plane.db.projects import Project
from control_plane.db.runs import Run
from control_plane.db.sessions import ChatSession
from control_plane.db.teams import Agent, Comment, Task
from control_plane.operations.gateway import performs
from control_plane.operations.tasks import reasons, runs
from control_plane.orders import totals
from shared.errors import Invalid
from shared.states import RunStatus, TaskStatus

MAX_LISTED = 1000
Row = tuple[Task, str, str | None, str]
"""A task, its project's slug, its agent's name and its session's mode."""


@performs(declared.LIST)
def list_(  # noqa: PLR0913, PLR0917 - the filters are the interface
    core: Core,
    caller: Caller,
    status: str | None = None,
    assignee: str | None = None,
    project: str | None = None,
    limit: int = 50,
    text: str | None = None,
) -> list[TaskSummary]:
    """Tasks, newest first (S-025). Raises Invalid or NotFound for a wrong filter."""
    with core.database.read() as db:
        wanted = _with_text(_filtered(db, caller, status, assignee, project), text)
        return _summaries(db, core, caller, _newest(db, wanted, limit))


def open_with_agents(
    core: Core, caller: Caller, project: str | None, limit: int, text: str | None
) -> list[TaskSummary]:
    """Open tasks that wait for an agent, newest first. Raises NotFound for an unknown project."""
    with core.database.read() as db:
        wanted = _with_text(_filtered(db, caller, TaskStatus.OPEN, None, project), text)
        return _summaries(db, core, caller, _newest(db, wanted.where(Task.assignee_id.is_not(None)), limit))


def summary(core: Core, caller: Caller, task_id: str) -> TaskSummary:
    """A task without its timeline. Raises NotFound."""
    with core.database.read() as db:
        task = find_task(db, caller, task_id)
        row = db.execute(_tasks(caller).where(Task.id == task.id)).one()
        return _summaries(db, core, caller, [row])[0]


@performs(declared.SHOW)
def show(core: Core, caller: Caller, task_id: str, since: datetime | None = None) -> TaskDocument:
    """A task with its comments and runs in chronological order (S-026); with `since`, without earlier comments.

    Raises NotFound.
    """
    with core.database.read() as db:
        task = find_task(db, caller, task_id)
        row = db.execute(_tasks(caller).where(Task.id == task.id)).one()
        (summary,) = _summaries(db, core, caller, [row])
        orders = _orders(db, task.id)
        timeline = timeline_of(comments_of(db, task.id, since), runs.runs_on(db, task.id, core.clock.now()))
    return TaskDocument(
        **dict(summary),
        description=task.description,
        session=task.session_id,
        limits=task.limits,
        **_delivered(orders),
        pull_request=next((each.pull_request for each in orders if each.pull_request), None),
        timeline=timeline,
    )


def answer(core: Core, caller: Caller, task_id: str) -> TaskDocument:
    """The task after an action, with a note on what happens next."""
    document = show(core, caller, task_id)
    return document.model_copy(update={"note": next_for(document)})


def next_for(task: TaskSummary) -> str:
    """A sentence that says whose turn is next, and what the task waits for."""
    if task.status == TaskStatus.OPEN and task.assignee == USER:
        return f"{task.id} is waiting for you: comment with @agent, or fleet task assign {task.id} AGENT"
    if task.status in {TaskStatus.OPEN, TaskStatus.IN_PROGRESS}:
        return f"{task.assignee} is next on {task.id}: {task.reason}"
    return f"{task.id} is {task.status}: {task.reason}"


def comments_of(db: Session, task_id: str, since: datetime | None = None) -> list[CommentDocument]:
    """The thread, oldest first."""
    thread = select(Comment).where(Comment.task_id == task_id).order_by(Comment.id)
    if since is not None:
        thread = thread.where(Comment.at >= since)
    return [comment_document(comment) for comment in db.scalars(thread)]


def comment_document(comment: Comment) -> CommentDocument:
    return CommentDocument(
        id=str(comment.id),
        author=comment.author,
        user=comment.user,
        kind=comment.kind,
        text=comment.text,
        run=comment.run_id,
        at=comment.at,
    )


def timeline_of(comments: Iterable[CommentDocument], runs: Iterable[TaskRunDocument]) -> list[TimelineEntry]:
    """Comments and runs in chronological order; a run comes before comments with the same time."""
    entries = [
        *(TimelineEntry(kind="run", at=run.started_at, run=run) for run in runs),
        *(TimelineEntry(kind="comment", at=comment.at, comment=comment) for comment in comments),
    ]
    # Sorting is stable: comments keep the order of their numbers.
    return sorted(entries, key=lambda entry: entry.at)


def _orders(db: Session, task_id: str) -> Sequence[Order]:
    """The orders of the task's runs, newest first, loaded without their prompts."""
    delivered = load_only(Order.branch, Order.head_commit, Order.pushed, Order.pull_request)
    of_task = select(Order).where(Order.task_id == task_id).options(delivered)
    return db.scalars(of_task.order_by(Order.number.desc())).all()


def _delivered(orders: Sequence[Order]) -> dict[str, Any]:
    """Branch and commit of the newest work; `orders` newest first."""
    newest = next((order for order in orders if order.head_commit), None)
    if newest is None:
        return {"branch": None, "head_commit": None, "pushed": False}
    return {"branch": newest.branch, "head_commit": newest.head_commit, "pushed": newest.pushed}


def _tasks(caller: Caller) -> Select[Task, str, str | None, str]:
    return (
        select(Task, Project.slug, Agent.name, ChatSession.mode)
        .join(Project, Project.id == Task.project_id)
        .join(ChatSession, ChatSession.id == Task.session_id)
        .outerjoin(Agent, Agent.id == Task.assignee_id)
        .where(Task.organization_id == caller.organization_id)
    )


def _filtered(
    db: Session, caller: Caller, status: str | None, assignee: str | None, project: str | None
) -> Select[Task, str, str | None, str]:
    query = _tasks(caller)
    if status is not None:
        query = query.where(Task.status == _status(status))
    if assignee == USER:
        query = query.where(Task.assignee_id.is_(None))
    elif assignee is not None:
        query = query.where(Task.assignee_id == _agent_id(db, caller, assignee))
    if project is not None:
        query = query.where(Task.project_id == find_project(db, caller.organization_id, project).id)
    return query


def _with_text(query: Select[Task, str, str | None, str], text: str | None) -> Select[Task, str, str | None, str]:
    if text is None:
        return query
    return query.where(or_(contains_words(text, Task.title, Task.description), begins(Task.id, text.upper())))


def _newest(db: Session, query: Select[Task, str, str | None, str], limit: int) -> Sequence[Row]:
    return db.execute(query.order_by(Task.number.desc()).limit(max(1, min(limit, MAX_LISTED)))).all()


def _status(text: str) -> str:
    if text not in {each.value for each in TaskStatus}:
        raise Invalid(
            f"unknown task status {shown(text)}", code="E-TASK-STATUS", next=f"expected one of {', '.join(TaskStatus)}"
        )
    return text


def _agent_id(db: Session, caller: Caller, name: str) -> str:
    """Includes removed agents: a task may still be assigned to one. Raises NotFound."""
    named = db.execute(select(Agent.name, Agent.id).where(Agent.organization_id == caller.organization_id))
    ids = {each: agent_id for each, agent_id in named}
    if name not in ids:
        raise unknown("agent", name, [USER, *ids], "fleet agent ls")
    return ids[name]


@dataclass(frozen=True)
class _Beside:
    """Data of the listed tasks from other tables."""

    totals: Mapping[str, Totals]
    reasons: Mapping[str, str]
    begun: Mapping[str, datetime]
    """Start of the current run, by task id."""
    now: datetime


def _summaries(db: Session, core: Core, caller: Caller, rows: Sequence[Row]) -> list[TaskSummary]:
    tasks = [row[0] for row in rows]
    beside = _Beside(
        totals.of_tasks(db, [task.id for task in tasks]),
        reasons.of_tasks(db, core, tasks),
        _begun(db, [task.order_id for task in tasks if task.status == TaskStatus.IN_PROGRESS and task.order_id]),
        core.clock.now(),
    )
    return [_summary(caller, row, beside) for row in rows]


def _begun(db: Session, order_ids: Collection[str]) -> dict[str, datetime]:
    if not order_ids:
        return {}
    running = select(Run.task_id, func.max(Run.started_at)).where(
        Run.order_id.in_(order_ids), Run.status == RunStatus.RUNNING
    )
    return {str(task_id): began for task_id, began in db.execute(running.group_by(Run.task_id))}


def _summary(caller: Caller, row: Row, beside: _Beside) -> TaskSummary:
    task, project, agent, mode = row
    began = beside.begun.get(task.id)
    spent = beside.totals[task.id]
    return TaskSummary(
        id=task.id,
        title=task.title,
        organization=caller.organization,
        status=task.status,
        assignee=agent or USER,
        reason=beside.reasons[task.id],
        project=project,
        mode=mode,
        priority=task.priority,
        user=task.user,
        order=task.order_id,
        hand_offs=task.hand_offs,
        created_at=task.created_at,
        updated_at=task.updated_at,
        queued_at=task.queued_at,
        ended_at=task.ended_at,
        current_run_elapsed_seconds=max(0.0, (beside.now - began).total_seconds()) if began else None,
        total_duration_seconds=spent.duration_ms / 1000,
        totals=spent,
    )
