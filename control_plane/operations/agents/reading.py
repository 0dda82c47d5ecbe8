"""Read agents: one, all, and the reporting tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from control_plane.contract.declarations import agents as declared
from control_plane.contract.declarations.agents import AgentDocument, AgentNode
from control_plane.core import Caller, Core
from control_plane.core.lookups.agents import active_agents, find_agent
from control_plane.db.installation import Organization
from control_plane.db.projects import Project, Provider
from control_plane.db.teams import Agent
from control_plane.operations.gateway import performs
from control_plane.orders import totals
from control_plane.teams.roster import roster_of, tree_of


@performs(declared.LIST)
def list_(core: Core, caller: Caller, include_removed: bool = False) -> list[AgentDocument]:
    """The agents of the organization by name, without their instructions; always four queries."""
    with core.database.read() as db:
        agents = _agents(db, caller.organization_id, include_removed)
        names = _Names.of(db, caller.organization_id)
        return [_document(agent, caller.organization, names) for agent in agents]


@performs(declared.SHOW)
def show(core: Core, caller: Caller, name: str) -> AgentDocument:
    """One agent, possibly a removed one, with its instructions and totals (S-013).

    Raises NotFound with similar names.
    """
    with core.database.read() as db:
        agent = db.scalar(select(Agent).where(Agent.organization_id == caller.organization_id, Agent.name == name))
        return agent_document(db, agent or find_agent(db, caller.organization_id, name))


@performs(declared.TREE)
def tree(core: Core, caller: Caller) -> list[AgentNode]:
    """The agents without a boss, by name, each with its reports; without removed agents."""
    with core.database.read() as db:
        return tree_of(roster_of(db, caller.organization_id))


def agent_document(db: Session, agent: Agent, warnings: Sequence[str] = ()) -> AgentDocument:
    """The complete document of an agent, as operations return it."""
    organization = db.get_one(Organization, agent.organization_id).name
    document = _document(agent, organization, _Names.of(db, agent.organization_id))
    more = {"instructions": agent.instructions, "totals": totals.of_agent(db, agent.organization_id, agent.id)}
    return document.model_copy(update={**more, "warnings": list(warnings)})


@dataclass(frozen=True)
class _Names:
    """The names for the IDs in an agent's row."""

    agents: Mapping[str, str]
    reports: Mapping[str, Sequence[str]]
    projects: Mapping[str, str]
    providers: Mapping[str, str]

    @classmethod
    def of(cls, db: Session, organization_id: str) -> _Names:
        agents = _agents(db, organization_id, include_removed=True)
        reports: dict[str, list[str]] = {}
        for agent in agents:
            if agent.boss_id is not None and agent.removed_at is None:
                reports.setdefault(agent.boss_id, []).append(agent.name)
        return cls(
            {agent.id: agent.name for agent in agents},
            reports,
            _named(db, Project.id, Project.slug, Project.organization_id == organization_id),
            _named(db, Provider.id, Provider.name, Provider.organization_id == organization_id),
        )


def _named(
    db: Session, key: InstrumentedAttribute[str], name: InstrumentedAttribute[str], own: ColumnElement[bool]
) -> dict[str, str]:
    return {row[0]: row[1] for row in db.execute(select(key, name).where(own))}


def _agents(db: Session, organization_id: str, include_removed: bool) -> Sequence[Agent]:
    if not include_removed:
        return active_agents(db, organization_id)
    everyone = select(Agent).where(Agent.organization_id == organization_id)
    return sorted(db.scalars(everyone), key=lambda agent: agent.name)


def _document(agent: Agent, organization: str, names: _Names) -> AgentDocument:
    return AgentDocument(
        id=agent.id,
        name=agent.name,
        organization=organization,
        description=agent.description,
        instructions_path=agent.instructions_path,
        instructions=None,
        project=names.projects.get(agent.project_id or ""),
        boss=names.agents.get(agent.boss_id or ""),
        reports=list(names.reports.get(agent.id, ())),
        max_iterations=agent.max_iterations,
        cost_limit=agent.cost_limit,
        provider=names.providers.get(agent.provider_id or ""),
        model=agent.model,
        reviewer=names.providers.get(agent.reviewer_id or ""),
        labels=agent.labels,
        concurrency=agent.concurrency,
        limits=agent.limits,
        thinking=agent.thinking,
        is_removed=agent.removed_at is not None,
        created_at=agent.created_at,
        removed_at=agent.removed_at,
        totals=None,
    )
