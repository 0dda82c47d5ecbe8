"""Agents for tests, and tasks written directly, without the operations that would start them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select

from control_plane.core import Caller, Core
from control_plane.db.projects import Project
from control_plane.db.sessions import ChatSession
from control_plane.db.teams import Agent, Task
from control_plane.declarations.agents import AgentDocument, AgentRequest
from control_plane.operations import agents
from shared.names import new_id


def add_agent(core: Core, caller: Caller, name: str = "lead", **fields: Any) -> AgentDocument:
    """An agent with uploaded instructions, unless `fields` say otherwise."""
    given = fields if {"instructions", "instructions_path"} & fields.keys() else {"instructions": "Lead.", **fields}
    return agents.create(core, caller, AgentRequest(name=name, **given))


def put_agents(core: Core, caller: Caller, names: Sequence[str], boss: str) -> None:
    """Add a chain of agents: the boss of each is the previous one, and that of the first is `boss`."""
    with core.database.write() as db:
        own = Agent.organization_id == caller.organization_id
        above = db.scalars(select(Agent.id).where(own, Agent.name == boss)).one()
        for name in names:
            values = {"instructions": "Work.", "labels": {}, "created_at": core.clock.now()}
            agent = Agent(id=new_id(), organization_id=caller.organization_id, name=name, boss_id=above, **values)
            db.add(agent)
            db.flush()
            above = agent.id


def put_task(core: Core, caller: Caller, agent: str, status: str = "open") -> str:
    """Add a task with this assignee and status to the organization's first project; return its id."""
    now = core.clock.now()
    with core.database.write() as db:
        own = Agent.organization_id == caller.organization_id
        project = db.scalars(select(Project).where(Project.organization_id == caller.organization_id)).first()
        assert project is not None
        number = (db.scalar(select(func.max(Task.number))) or 0) + 1
        chat = {"name": "", "mode": "build", "allow": [], "created_at": now}
        common = {"organization_id": caller.organization_id, "project_id": project.id}
        session = ChatSession(id=new_id(), **common, **chat)
        db.add(session)
        db.flush()
        task = Task(
            id=f"DEFA-{number:04}",
            number=number,
            title="Mend it",
            description="Mend it",
            status=status,
            assignee_id=db.scalars(select(Agent.id).where(own, Agent.name == agent)).one(),
            session_id=session.id,
            limits={},
            queued_at=now,
            created_at=now,
            updated_at=now,
            **common,
        )
        db.add(task)
    return task.id
