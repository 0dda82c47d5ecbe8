"""The settings with which an agent works on a task: its provider."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.db.projects import Project, Provider
from control_plane.db.teams import Agent


def provider_of(db: Session, agent: Agent, project: Project) -> Provider | None:
    """The agent's provider, else the project's, else the organization's only one.

    None if none of these exists, or if the named one was removed: any other would be a guess.
    """
    named = agent.provider_id or project.provider_id
    if named is not None:
        provider = db.get(Provider, named)
        return provider if provider is not None and provider.removed_at is None else None
    alive = select(Provider).where(Provider.organization_id == project.organization_id, Provider.removed_at.is_(None))
    found = db.scalars(alive.limit(2)).all()
    return found[0] if len(found) == 1 else None
