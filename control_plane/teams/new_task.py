"""A new task: an id from the organization's counter, its own session, and a first assignee."""

from __future__ import annotations

import math
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from control_plane.contract.declarations.task_documents import TaskRequest
from control_plane.contract.documents.base import MAX_COMMENT, MAX_TITLE
from control_plane.contract.validation.checks import check_text
from control_plane.core import Caller, Core
from control_plane.core.lookups import tasks
from control_plane.core.lookups.modes import find_mode
from control_plane.core.lookups.organizations import locked_organization
from control_plane.core.lookups.projects import find_project
from control_plane.db.installation import Organization
from control_plane.db.projects import Project
from control_plane.db.sessions import ChatSession
from control_plane.db.teams import Task
from control_plane.orders.conversations.new_session import new_session
from control_plane.teams.claiming import claim_tasks
from shared.errors import Invalid, Precondition, TooLarge
from shared.states import TaskStatus

MAX_SESSION_NAME = 255
_LIMITS = ("max_iterations", "cost_limit", "max_run_seconds")


def create_within(db: Db, core: Core, caller: Caller, request: TaskRequest) -> Task:
    """Write a task in the caller's transaction and begin it if it may begin: its `order_id` is then set.

    Also used by schedules and triggers. Call `core.broker.changed(order_id)` after the commit.

    Raises NotFound, Invalid, TooLarge, or Precondition if there is no project.
    """
    check_request(request)
    organization = locked_organization(db, caller.organization_id)
    project = _project(db, organization, request.project)
    find_mode(db, project, request.mode)
    if request.assignee is not None:
        assignee = tasks.assignee(db, organization.id, request.assignee)
    else:
        assignee = tasks.first_root_agent(db, organization.id)
    organization.last_task += 1
    task_id = f"{organization.acronym}-{organization.last_task:04d}"
    chat = _workspace(core, caller, project, request, task_id)
    task = _task(core, caller, request, chat)
    task.number, task.assignee_id = organization.last_task, assignee.id if assignee else None
    for row in (chat, task):
        db.add(row)
        db.flush()
    claim_tasks(db, core, organization.id)
    return task


def check_request(request: TaskRequest) -> None:
    """Check everything that needs no database. Raises Invalid, or TooLarge for the texts."""
    title = check_text("the title", request.title, limit=MAX_TITLE)
    if len(title.splitlines()) > 1:
        raise Invalid(
            "the title has more than one line",
            code="E-TASK-TITLE",
            next="fleet task create 'ONE LINE' --description 'all the rest'",
        )
    if request.description is not None:
        check_long_text("the description", request.description)
    for name in ("cost_limit", "max_run_seconds"):
        if not math.isfinite(getattr(request, name) or 0):
            raise Invalid(f"{name} must be a finite number", code="E-ORDER-LIMIT", next="0 means no limit")


def check_long_text(what: str, text: str) -> str:
    """Return a text that goes into every briefing, unchanged.

    Raises Invalid, or TooLarge, which says where to put the text instead (S-072).
    """
    if len(text) > MAX_COMMENT:
        raise TooLarge(
            f"{what} has {len(text):,} characters; {MAX_COMMENT:,} are allowed",
            code="E-TASK-TEXT",
            why="agents receive the whole thread at every turn",
            next="put it in a file of the repository and refer to that file here",
        ).of(text)
    return check_text(what, text, limit=MAX_COMMENT)


def _project(db: Db, organization: Organization, slug: str | None) -> Project:
    """The requested project, else the organization's default, else its only one."""
    if slug is not None:
        return find_project(db, organization.id, slug)
    living = select(Project).where(Project.organization_id == organization.id, Project.removed_at.is_(None))
    projects = db.scalars(living.limit(2)).all()
    if organization.project_id is not None:
        own = db.scalar(living.where(Project.id == organization.project_id))
        if own is not None:
            return own
    if len(projects) == 1:
        return projects[0]
    raise Precondition(
        "no project given, and none can be chosen automatically",
        code="E-TASK-PROJECT",
        why="the organization has several projects and no default" if projects else "the organization has no project",
        next=f"fleet organization edit {organization.name} --project SLUG, or pass --project SLUG"
        if projects
        else "fleet project add SLUG --git-url URL",
    )


def _workspace(core: Core, caller: Caller, project: Project, request: TaskRequest, task_id: str) -> ChatSession:
    """The session in which all of the task's runs are turns, one after the other."""
    chat = new_session(core, project, request.mode, caller.user_id)
    chat.task_id = task_id
    chat.name = f"{task_id} {request.title.strip()}"[:MAX_SESSION_NAME]
    return chat


def _task(core: Core, caller: Caller, request: TaskRequest, chat: ChatSession) -> Task:
    now = core.clock.now()
    return Task(
        id=chat.task_id,
        organization_id=caller.organization_id,
        title=request.title.strip(),
        description=request.description if request.description is not None else request.title.strip(),
        status=TaskStatus.OPEN.value,
        project_id=chat.project_id,
        session_id=chat.id,
        mode=request.mode,
        priority=request.priority,
        limits=_limits(request),
        order_id=None,
        hand_offs=0,
        user=caller.user,
        user_id=caller.user_id,
        queued_at=now,
        created_at=now,
        updated_at=now,
        ended_at=None,
    )


def _limits(request: TaskRequest) -> dict[str, Any]:
    asked = {name: getattr(request, name) for name in _LIMITS}
    return {name: value for name, value in asked.items() if value is not None}
