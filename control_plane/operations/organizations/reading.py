"""Read organizations: settings, agents, totals."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from control_plane.contract.declarations import organizations as declared
from control_plane.contract.declarations.organizations import OrganizationDocument
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import find_organization, in_organization
from control_plane.db.installation import Organization
from control_plane.db.projects import Project, Provider
from control_plane.db.teams import Agent, Task
from control_plane.operations.gateway import performs
from control_plane.orders import totals
from control_plane.teams.roster import roster_of, tree_of
from shared.states import TaskStatus


@performs(declared.LIST)
def list_(core: Core, caller: Caller) -> list[OrganizationDocument]:
    """The organizations that the caller may see, by name: their own, or all (S-007)."""
    wanted = select(Organization).order_by(Organization.name)
    if not caller.everywhere:
        wanted = wanted.where(Organization.id == caller.organization_id)
    with core.database.read() as db:
        return [document_of(db, row) for row in db.scalars(wanted)]


@performs(declared.SHOW)
def show(core: Core, caller: Caller, name: str) -> OrganizationDocument:
    """One organization with the tree of its agents. Raises NotFound if the caller may not see it."""
    caller = in_organization(core, caller, name)
    with core.database.read() as db:
        row = find_organization(db, caller.organization)
        tree = tree_of(roster_of(db, row.id))
        return document_of(db, row).model_copy(update={"agents": tree})


def names(core: Core) -> list[str]:
    """The names of all organizations, in the order of `list_`: without their totals, which are sums over all runs."""
    with core.database.read() as db:
        return list(db.scalars(select(Organization.name).order_by(Organization.name)))


def document_of(db: Session, row: Organization) -> OrganizationDocument:
    """The organization's document as in lists, with its totals and the number of its tasks in each state."""
    agents = select(func.count()).where(Agent.organization_id == row.id, Agent.removed_at.is_(None))
    return OrganizationDocument(
        id=row.id,
        name=row.name,
        description=row.description,
        acronym=row.acronym,
        project=_project(db, row),
        reviewer=db.get_one(Provider, row.reviewer_id).name if row.reviewer_id else None,
        concurrency=row.concurrency,
        max_hand_offs=row.max_hand_offs,
        limits=row.limits,
        thinking=row.thinking,
        paused=row.paused_at is not None,
        paused_at=row.paused_at,
        agent_count=db.scalar(agents) or 0,
        tasks=_tasks(db, row),
        totals=totals.of_organization(db, row.id),
        created_at=row.created_at,
    )


def _project(db: Session, row: Organization) -> str | None:
    project = db.get(Project, row.project_id) if row.project_id else None
    return project.slug if project is not None and project.removed_at is None else None


def _tasks(db: Session, row: Organization) -> dict[str, int]:
    counted = select(Task.status, func.count()).where(Task.organization_id == row.id).group_by(Task.status)
    found: dict[str, int] = dict(db.execute(counted).all())
    return {str(status): found.get(status, 0) for status in TaskStatus}
