"""Modes, found by name: those of the project, then the organization's, then the built-in ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from control_plane.contract.validation.checks import unknown
from control_plane.db.modes import CustomMode
from control_plane.db.projects import Project
from shared.work_order import Mode

BUILT_IN: Sequence[str] = get_args(Mode)


def find_mode(db: Session, project: Project, name: str) -> CustomMode | None:
    """The definition of a mode; None for a built-in one without settings. Raises NotFound with similar names."""
    own = modes_of(db, project)
    # The project's own come first.
    found = next((each for each in own if each.name == name), None)
    if found is None and name not in BUILT_IN:
        raise unknown("mode", name, [*BUILT_IN, *(each.name for each in own)], "fleet mode ls")
    return found


def mode_exists(db: Session, project: Project, name: str) -> bool:
    """Whether orders of the project can have this mode."""
    return name in BUILT_IN or any(each.name == name for each in modes_of(db, project))


def modes_of(db: Session, project: Project) -> list[CustomMode]:
    """The modes that a project has besides the built-in ones: its own, then those of all projects, by name."""
    of_project = or_(CustomMode.project_id == project.id, CustomMode.project_id.is_(None))
    wanted = select(CustomMode).where(CustomMode.organization_id == project.organization_id, of_project)
    return list(db.scalars(wanted.order_by(CustomMode.project_id.is_(None), CustomMode.name)))
