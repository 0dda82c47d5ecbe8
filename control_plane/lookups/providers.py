"""Providers, found by name."""

from __future__ import annotations

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from control_plane.db.projects import Provider
from control_plane.validation.checks import unknown


def find_provider(db: Session, organization_id: str, name: str) -> Provider:
    """The provider with this name. Raises NotFound with similar names."""
    row = db.scalar(living_providers(organization_id).where(Provider.name == name))
    if row is None:
        known = [each.name for each in db.scalars(living_providers(organization_id))]
        raise unknown("provider", name, known, "fleet provider ls")
    return row


def only_provider(db: Session, organization_id: str) -> Provider | None:
    """The organization's provider, if it has exactly one."""
    rows = db.scalars(living_providers(organization_id).limit(2)).all()
    return rows[0] if len(rows) == 1 else None


def living_providers(organization_id: str) -> Select[Provider]:
    return select(Provider).where(Provider.organization_id == organization_id, Provider.removed_at.is_(None))
