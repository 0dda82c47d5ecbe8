"""The agents of an organization and their bosses: as rows, as the roster of a prompt, and as a tree."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy.orm import Session

from control_plane.contract.declarations.agents import AgentNode
from control_plane.core.lookups.agents import active_agents
from shared.roster import reports_of
from shared.work_order import RosterAgent


def roster_of(db: Session, organization_id: str) -> tuple[RosterAgent, ...]:
    """All active agents by name, in the form every agent receives; the same until an agent is changed."""
    agents = active_agents(db, organization_id)
    names = {agent.id: agent.name for agent in agents}
    return tuple(
        RosterAgent(name=agent.name, boss=names.get(agent.boss_id or ""), description=agent.description)
        for agent in agents
    )


def tree_of(agents: Iterable[RosterAgent]) -> list[AgentNode]:
    """The agents without a boss, by name, each with its reports."""
    below = reports_of(agents)

    def node(agent: RosterAgent) -> AgentNode:
        reports = [node(report) for report in below[agent.name]]
        return AgentNode(name=agent.name, description=agent.description, reports=reports)

    return [node(agent) for agent in below[None]]
