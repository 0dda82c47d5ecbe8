"""Agents, found by name."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.contract.validation.checks import unknown
from control_plane.db.teams import Agent


def find_agent(db: Session, organization_id: str, name: str) -> Agent:
    """The agent with this name that was not removed. Raises NotFound with similar names."""
    known = {agent.name: agent for agent in active_agents(db, organization_id)}
    if name not in known:
        raise unknown("agent", name, known, "fleet agent ls")
    return known[name]


def active_agents(db: Session, organization_id: str) -> Sequence[Agent]:
    """The agents of the organization that were not removed, by name."""
    alive = select(Agent).where(Agent.organization_id == organization_id, Agent.removed_at.is_(None))
    # Not sorted by the database, because collations differ: the roster must be the same bytes everywhere.
    return sorted(db.scalars(alive), key=lambda agent: agent.name)
