"""Finding a task, and its possible assignees; always within the caller's organization."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.contract.documents.base import USER
from control_plane.contract.validation.checks import shown
from control_plane.core import Caller
from control_plane.core.lookups.agents import active_agents, find_agent
from control_plane.core.lookups.organizations import locked_organization
from control_plane.db.teams import Agent, Task
from shared.errors import Conflict, NotFound, Precondition
from shared.states import TaskStatus

_T = TaskStatus


def find_task(db: Session, caller: Caller, task_id: str) -> Task:
    """The task with this id, in any case. Raises NotFound, with the same text for a task of another organization."""
    wanted = select(Task).where(Task.id == task_id.upper(), Task.organization_id == caller.organization_id)
    task = db.scalar(wanted)
    if task is None:
        raise NotFound(f"task {shown(task_id)} not found", code="E-TASK-404", next="fleet task ls")
    return task


def locked_task(db: Session, caller: Caller, task_id: str) -> Task:
    """The current task, with its organization locked: nothing else claims, routes or moves it until the commit."""
    locked_organization(db, caller.organization_id)
    return find_task(db, caller, task_id)


def assignee(db: Session, organization_id: str, name: str) -> Agent | None:
    """The assignee with this name: None for `user`. Raises NotFound."""
    return None if name == USER else find_agent(db, organization_id, name)


def first_root_agent(db: Session, organization_id: str) -> Agent:
    """The first agent by name that has no boss (S-022). Raises Precondition if there is none."""
    agent = next((each for each in active_agents(db, organization_id) if each.boss_id is None), None)
    if agent is None:
        raise Precondition(
            "no agent can take the task",
            code="E-TASK-AGENT",
            why="a task is assigned to the first agent without a boss; this organization has none",
            next="fleet agent add NAME --instructions FILE    or assign it to yourself: --assignee user",
        )
    return agent


def refused(task: Task, may: str) -> Conflict:
    """The Conflict for an action that the task's state does not allow; `may` names the states that do."""
    return Conflict(f"task {task.id} is {_in_words(task)}; {may}", code="E-TASK-STATE", next=_way_on(task))


def _in_words(task: Task) -> str:
    """The state in words; for an open task, also whether it waits for an agent or for you."""
    if task.status == _T.OPEN:
        return "open and waiting for an agent" if task.assignee_id else "open and waiting for you"
    return "in progress" if task.status == _T.IN_PROGRESS else task.status


def _way_on(task: Task) -> str:
    """The command with which work on a task in this state can continue."""
    match task.status:
        case _T.IN_PROGRESS:
            return f"fleet task preempt {task.id}    stops its run and assigns it to you"
        case _T.DONE:
            return f"fleet task reopen {task.id}"
        case _T.CANCELED:
            return "fleet task create 'TITLE'    a canceled task cannot be reopened"
    return f"fleet task show {task.id}"
