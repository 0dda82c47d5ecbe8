"""An agent's description, written by a model from its instructions (S-012): best effort, on any suitable drone."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.installation import Organization
from control_plane.db.orders import Order
from control_plane.db.projects import Project
from control_plane.db.sessions import ChatSession as Chat
from control_plane.db.teams import Agent
from control_plane.orders.conversations.new_session import new_session
from control_plane.orders.draft import Draft, create_order
from control_plane.teams.agent_settings import provider_of
from shared.states import OrderStatus
from shared.terminal import logs
from shared.work_order import Describe, Limits

MAX_DESCRIPTION = 1000
"""Maximum characters. It is in the prompt of every agent of the organization."""
LIMITS = Limits(max_iterations=5, cost_limit=0.5, max_run_seconds=300)
PRIORITY = -10
"""Regular work goes first."""
log = logs.get(__name__)


def ask_description(db: Session, core: Core, agent: Agent, user: str = "") -> str | None:
    """Ask for the agent's description; returns the order's id, or None if there is no project or provider for it."""
    project = _project(db, agent)
    provider = provider_of(db, agent, project) if project is not None else None
    if project is None or provider is None:
        log.warning(
            "no description requested: no project or provider", agent=agent.name, organization=agent.organization_id
        )
        return None
    draft = Draft(
        project=project,
        provider=provider,
        session=_session(core, project, agent),
        prompt=f"Describe agent {agent.name} from its instructions.",
        user=user,
        mode="plan",
        purpose="describe",
        asked=_asked(agent).model_dump(mode="json"),
        limits=LIMITS,
        priority=PRIORITY,
        labels=agent.labels,
    )
    return create_order(db, core, draft).id


def order_ended(db: Session, _core: Core, order: Order) -> None:
    """Store the description that a service order produced; a failed one leaves the agent without."""
    if order.purpose != "describe":
        return
    asked = Describe.model_validate(order.asked)
    named = select(Agent).where(Agent.organization_id == order.organization_id, Agent.name == asked.agent)
    # Locked: its instructions may be changing at the same time.
    agent = db.scalar(named.with_for_update().execution_options(populate_existing=True))
    if order.status != OrderStatus.SUCCEEDED:
        log.warning("no description was generated for an agent", agent=asked.agent, order=order.id, why=order.reason)
    # If its instructions have changed since, another order is on its way.
    elif agent is not None and asked == _asked(agent):
        agent.description = cleaned(order.response or "")


def cleaned(text: str) -> str:
    """One paragraph of at most MAX_DESCRIPTION characters, ended after a full sentence if possible."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if len(line) <= MAX_DESCRIPTION:
        return line
    sentence, stop, _ = line[:MAX_DESCRIPTION].rpartition(". ")
    return sentence + stop.strip() if stop else f"{line[: MAX_DESCRIPTION - 1]}…"


def _asked(agent: Agent) -> Describe:
    return Describe(agent=agent.name, instructions=agent.instructions, instructions_path=agent.instructions_path)


def _project(db: Session, agent: Agent) -> Project | None:
    """The agent's, else the organization's default, else its only one."""
    named = agent.project_id or db.get_one(Organization, agent.organization_id).project_id
    if named is not None and (project := db.get_one(Project, named)).removed_at is None:
        return project
    alive = select(Project).where(Project.organization_id == agent.organization_id, Project.removed_at.is_(None))
    return _only(db.scalars(alive.limit(2)).all())


def _only(projects: Sequence[Project]) -> Project | None:
    return projects[0] if len(projects) == 1 else None


def _session(core: Core, project: Project, agent: Agent) -> Chat:
    session = new_session(core, project, "plan", None)
    session.name = f"description of {agent.name}"
    return session
