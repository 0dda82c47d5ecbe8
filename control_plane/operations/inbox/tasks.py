"""Tasks in the inbox: those that are back with the user."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session as Db

from control_plane.db.projects import Project
from control_plane.db.teams import Task
from control_plane.declarations.inbox import InboxItem
from control_plane.operations.access.roles import may
from control_plane.operations.inbox.scope import InboxView
from control_plane.operations.tasks import reasons
from shared.states import TaskStatus

_WITH_THE_USER = (TaskStatus.OPEN.value, TaskStatus.FAILED.value)


def count_tasks(db: Db, inbox: InboxView) -> dict[str, int]:
    """The number of tasks that are with the user."""
    return {"task": db.scalar(select(func.count()).select_from(Task).where(*_waiting(inbox))) or 0}


def task_items(db: Db, inbox: InboxView, limit: int) -> Iterator[InboxItem]:
    """The tasks that are with the user, newest first."""
    wanted = select(Task, Project.slug).join(Project, Project.id == Task.project_id).where(*_waiting(inbox))
    rows = db.execute(wanted.order_by(Task.updated_at.desc(), Task.id).limit(limit)).all()
    why = reasons.of_tasks(db, inbox.core, [task for task, _ in rows])
    for task, project in rows:
        failed = task.status == TaskStatus.FAILED
        command = f"fleet task retry {task.id}" if failed else f"fleet comment {task.id} '@AGENT TEXT'"
        yield InboxItem(
            id=f"task:{task.id}",
            kind="task",
            title=task.title,
            text=why[task.id],
            choices=[],
            default=None,
            deadline=None,
            since=task.updated_at,
            organization=inbox.organizations[task.organization_id],
            project=project,
            order=task.order_id,
            session=task.session_id,
            task=task.id,
            drone=None,
            user=task.user,
            waiting_for=None,
            may_answer=may(inbox.caller, "operator"),
            next=inbox.command(command, task.organization_id),
        )


def _waiting(inbox: InboxView) -> tuple[ColumnElement[bool], ...]:
    mine = (Task.user_id == inbox.user_id,) if inbox.user_id is not None else ()
    return (
        Task.organization_id.in_(inbox.organizations),
        Task.status.in_(_WITH_THE_USER),
        Task.assignee_id.is_(None),
        *mine,
    )
