"""The agents of an organization and who is whose boss: as rows, as the roster of a prompt, and as a tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.db.teams import Agent
from control_plane.team_documents import AgentNode
from shared import roster
from shared.roster import reports_of
from shared.work_order import RosterAgent


def active_agents(db: Session, organization_id: str) -> Sequence[Agent]:
    """The agents of the organization that were not removed, by name."""
    alive = select(Agent).where(Agent.organization_id == organization_id, Agent.removed_at.is_(None))
    # Not by the database, whose languages differ: the roster must be the same bytes everywhere.
    return sorted(db.scalars(alive), key=lambda agent: agent.name)


def roster_of(db: Session, organization_id: str) -> tuple[RosterAgent, ...]:
    """All its agents by name, as every one of them is told of the others; the same until somebody changes them."""
    agents = active_agents(db, organization_id)
    names = {agent.id: agent.name for agent in agents}
    return tuple(
        RosterAgent(name=agent.name, boss=names.get(agent.boss_id or ""), description=agent.description)
        for agent in agents
    )


def tree_of(agents: Iterable[RosterAgent]) -> list[AgentNode]:
    """Those without a boss, by name, each with its reports."""
    below = reports_of(agents)

    def node(agent: RosterAgent) -> AgentNode:
        reports = [node(report) for report in below[agent.name]]
        return AgentNode(name=agent.name, description=agent.description, reports=reports)

    return [node(agent) for agent in below[None]]


def draw(nodes: Sequence[AgentNode]) -> str:
    """The tree as text, as `fleet agent tree` prints it and agents read it."""
    return roster.draw(_flat(nodes, None))


def _flat(nodes: Sequence[AgentNode], boss: str | None) -> Iterable[RosterAgent]:
    for node in nodes:
        yield RosterAgent(name=node.name, boss=boss, description=node.description)
        yield from _flat(node.reports, node.name)
