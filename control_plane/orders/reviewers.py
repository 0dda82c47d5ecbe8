"""Which model reviews the change of an order: the order's own choice, else the agent's, project's or organization's."""

from __future__ import annotations

from sqlalchemy.orm import Session

from control_plane.core.lookups.providers import find_provider_or_model
from control_plane.db.installation import Organization
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.db.teams import Agent

NO_REVIEWER = "none"
"""In place of a name: the order is not reviewed, whatever the settings say."""


def reviewer_named(db: Session, project: Project, named: str | None) -> Provider | None:
    """The reviewer of an order that a user submits. Raises NotFound, Invalid."""
    if named == NO_REVIEWER:
        return None
    if named is not None:
        return find_provider_or_model(db, project.organization_id, named)
    return reviewer_by_default(db, project)


def reviewer_by_default(db: Session, project: Project, agent: Agent | None = None) -> Provider | None:
    """The agent's, else the project's, else the organization's; None without any, or if it was removed."""
    organization = db.get_one(Organization, project.organization_id)
    named = (agent.reviewer_id if agent else None) or project.reviewer_id or organization.reviewer_id
    provider = db.get(Provider, named) if named is not None else None
    return provider if provider is not None and provider.removed_at is None else None


def reviewer_again(db: Session, order: Order, project: Project) -> Provider | None:
    """The reviewer of an order that runs again or is continued: its own, or the default one if that was removed."""
    provider = db.get(Provider, order.reviewer_id) if order.reviewer_id is not None else None
    removed = provider is not None and provider.removed_at is not None
    return reviewer_by_default(db, project) if removed else provider


def reviewer_id_of(db: Session, organization_id: str, named: str | None) -> str | None:
    """The value of a setting. Raises NotFound, Invalid."""
    return find_provider_or_model(db, organization_id, named).id if named is not None else None
