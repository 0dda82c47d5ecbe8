"""Automatic tasks: created in the name of a schedule or a trigger, within its organization."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.contract.declarations.task_documents import TaskRequest
from control_plane.contract.documents.base import USER
from control_plane.contract.validation.checks import unknown
from control_plane.core import Caller, Core
from control_plane.core.audit_entries import entry_of
from control_plane.core.lookups.projects import find_project
from control_plane.db.audit_chain import note
from control_plane.db.automation import Schedule, Trigger
from control_plane.db.installation import Organization
from control_plane.db.teams import Agent, Task
from control_plane.teams.new_task import create_within


def make_task(db: Session, core: Core, row: Schedule | Trigger, request: TaskRequest) -> Task:
    """Create a task in the caller's transaction; its user is the row's kind and name.

    Raises as `new_task.create_within`. On an error, only its own writes are rolled back, not the caller's other ones.
    """
    organization = db.get_one(Organization, row.organization_id)
    kind = "schedule" if isinstance(row, Schedule) else "trigger"
    caller = Caller(organization.id, organization.name, "operator", f"{kind} {row.name}")
    with db.begin_nested():
        task = create_within(db, core, caller, request)
    note(db, entry_of(core, caller, "create_task", task.id))
    return task


def check_names(db: Session, organization_id: str, request: TaskRequest) -> None:
    """Raise NotFound if the project or the assignee of future tasks does not exist now."""
    if request.project is not None:
        find_project(db, organization_id, request.project)
    if request.assignee in {None, USER}:
        return
    living = select(Agent.name).where(Agent.organization_id == organization_id, Agent.removed_at.is_(None))
    names = db.scalars(living).all()
    if request.assignee not in names:
        raise unknown("agent", str(request.assignee), names, "fleet agent ls")
