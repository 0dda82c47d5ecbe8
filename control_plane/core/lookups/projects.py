"""Projects, found by their slug."""

from __future__ import annotations

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from control_plane.contract.validation.checks import unknown
from control_plane.db.projects import Project


def find_project(db: Session, organization_id: str, slug: str) -> Project:
    """The project with this slug. Raises NotFound with similar slugs."""
    row = db.scalar(living_projects(organization_id).where(Project.slug == slug))
    if row is None:
        known = [each.slug for each in db.scalars(living_projects(organization_id))]
        raise unknown("project", slug, known, "fleet project ls")
    return row


def living_projects(organization_id: str) -> Select[Project]:
    return select(Project).where(Project.organization_id == organization_id, Project.removed_at.is_(None))
