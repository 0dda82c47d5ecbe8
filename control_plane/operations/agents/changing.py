"""Create, edit and remove agents. Each holds the organization's lock, so that concurrent changes see each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.contract.declarations import agents as declared
from control_plane.contract.declarations.agents import AgentDocument, AgentEdit, AgentRequest
from control_plane.contract.validation.checks import check_agent
from control_plane.core import Caller, Core
from control_plane.core.lookups.agents import active_agents, find_agent
from control_plane.core.lookups.organizations import locked_organization
from control_plane.db.teams import Agent, Task
from control_plane.money.spending.setting import BudgetTarget, remove_budgets
from control_plane.operations.agents.fields import fill
from control_plane.operations.agents.reading import agent_document
from control_plane.operations.gateway import performs
from control_plane.services.describing import ask_description
from control_plane.teams.claiming import claim_tasks
from shared.errors import Conflict, Invalid
from shared.names import new_id
from shared.states import TaskStatus

_SHOWN = 5
"""Maximum number of tasks that an error message names."""


@dataclass(frozen=True)
class _Change:
    """The result of a transaction: the answer, and the orders whose followers must be notified."""

    agent: AgentDocument
    orders: Sequence[str] = field(default=())


@performs(declared.ADD)
def create(core: Core, caller: Caller, request: AgentRequest) -> AgentDocument:
    """Create an agent, or restore a removed one of the same name with these values (S-013). For admins.

    A description is requested; it arrives later, or never (S-012). Raises Conflict for a name that is taken, NotFound
    for an unknown boss, project or provider, Invalid for an invalid value.
    """
    check_agent(request.name)
    return _done(core, lambda db: _create(db, core, caller, request))


@performs(declared.EDIT)
def edit(core: Core, caller: Caller, name: str, changes: AgentEdit) -> AgentDocument:
    """Change the fields that are set, at least one (S-015). For admins.

    If the instructions change, a new description is requested. Raises Conflict while a task of the agent is in
    progress, unless only its concurrency is set; NotFound; and Invalid, also for bosses that would form a circle.
    """
    if not changes.model_fields_set:
        raise Invalid(f"no changes given for agent {name[:64]}", code="E-AGENT-EDIT", next="fleet agent edit --help")
    return _done(core, lambda db: _edit(db, core, caller, name, changes))


@performs(declared.REMOVE)
def remove(core: Core, caller: Caller, name: str) -> AgentDocument:
    """Remove an agent. Its row is kept for its costs, and its reports no longer have a boss (S-013, S-014).

    For admins. The warnings name each moved report. Raises NotFound, and Conflict while the agent has an unfinished
    task.
    """
    return _done(core, lambda db: _remove(db, core, caller, name))


def _done(core: Core, work: Callable[[Session], _Change]) -> AgentDocument:
    change = core.database.transact(work)
    for order_id in change.orders:
        core.broker.changed(order_id)
    return change.agent


def _create(db: Session, core: Core, caller: Caller, request: AgentRequest) -> _Change:
    locked_organization(db, caller.organization_id)
    agent = db.scalar(select(Agent).where(Agent.organization_id == caller.organization_id, Agent.name == request.name))
    if agent is not None and agent.removed_at is None:
        raise Conflict(
            f"agent {agent.name} already exists",
            code="E-AGENT-NAME",
            next=f"fleet agent edit {agent.name}    or: fleet agent show {agent.name}",
        )
    agent = agent or Agent(
        id=new_id(), organization_id=caller.organization_id, name=request.name, created_at=core.clock.now()
    )
    fill(db, agent, request, AgentRequest.model_fields)
    agent.description, agent.removed_at = "", None
    db.add(agent)
    db.flush()
    return _described(db, core, caller, agent)


def _edit(db: Session, core: Core, caller: Caller, name: str, changes: AgentEdit) -> _Change:
    locked_organization(db, caller.organization_id)
    agent = find_agent(db, caller.organization_id, name)
    given = changes.model_fields_set
    # No run works with the concurrency.
    if given != {"concurrency"}:
        _refuse_tasks(db, agent, "changed", TaskStatus.IN_PROGRESS)
    before = _source(agent)
    fill(db, agent, changes, given)
    db.flush()
    begun = claim_tasks(db, core, caller.organization_id) if "concurrency" in given else []
    if _source(agent) != before:
        agent.description = ""
    elif agent.description or not {"project", "provider"} & given:
        return _Change(agent_document(db, agent), begun)
    # Also requested if there is no description yet and a project or a provider, which may have been missing, was given.
    change = _described(db, core, caller, agent)
    return _Change(change.agent, [*begun, *change.orders])


def _remove(db: Session, core: Core, caller: Caller, name: str) -> _Change:
    locked_organization(db, caller.organization_id)
    agent = find_agent(db, caller.organization_id, name)
    _refuse_tasks(db, agent, "removed", TaskStatus.OPEN, TaskStatus.IN_PROGRESS)
    reports = [each for each in active_agents(db, caller.organization_id) if each.boss_id == agent.id]
    for report in reports:
        report.boss_id = None
    agent.removed_at = core.clock.now()
    remove_budgets(db, core, BudgetTarget(agent.organization_id, "agent", agent.id))
    warnings = [f"{report.name} no longer has a boss (was {name})" for report in reports]
    return _Change(agent_document(db, agent, warnings))


def _described(db: Session, core: Core, caller: Caller, agent: Agent) -> _Change:
    """Request the description. Adds a warning if no project or provider is available to write it."""
    order_id = ask_description(db, core, agent, caller.user)
    if order_id is not None:
        return _Change(agent_document(db, agent), [order_id])
    warning = (
        f"the description of {agent.name} cannot be written yet: select the project and provider to use"
        f" (next: fleet agent edit {agent.name} --project SLUG --provider NAME)"
    )
    return _Change(agent_document(db, agent, [warning]))


def _source(agent: Agent) -> tuple[str | None, ...]:
    """The values from which the description is written."""
    return agent.instructions, agent.instructions_path, agent.project_id if agent.instructions_path else None


def _refuse_tasks(db: Session, agent: Agent, what: str, *states: TaskStatus) -> None:
    """Check that the agent has no task in one of these states. Raises Conflict, which names some of them."""
    own = select(Task).where(Task.assignee_id == agent.id, Task.status.in_(states))
    tasks = db.scalars(own.order_by(Task.number).limit(_SHOWN + 1)).all()
    if tasks:
        named = ", ".join(task.id for task in tasks[:_SHOWN]) + (", …" if len(tasks) > _SHOWN else "")
        first = tasks[0].id
        works = tasks[0].status == TaskStatus.IN_PROGRESS
        raise Conflict(
            f"agent {agent.name} cannot be {what} while it has {' or '.join(states)} tasks: {named}",
            code="E-AGENT-TASKS",
            next=f"fleet task preempt {first}    stops its run and assigns it to you"
            if works
            else f"fleet task assign {first} user    or: fleet task cancel {first}",
        )
