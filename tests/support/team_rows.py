"""Agents and tasks as rows, written directly without the users' operations, and runs played to their end."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import locked_organization
from control_plane.db.orders import Order
from control_plane.db.projects import Project
from control_plane.db.runs import Run
from control_plane.db.sessions import ChatSession as Chat
from control_plane.db.teams import Agent, Comment, Task
from control_plane.orders.ending import Ending, finish
from control_plane.teams.claiming import claim_tasks
from control_plane.teams.thread import agent_wrote
from shared.names import new_id
from shared.reasons import RunEnd
from shared.states import OrderStatus, TaskStatus
from tests.support.made import start_run

ENDED = {
    "succeeded": (OrderStatus.SUCCEEDED, "stopped", "the model stopped"),
    "max_iterations": (OrderStatus.SUCCEEDED, "max_iterations", "The limit of 50 steps was reached."),
    "failed": (OrderStatus.FAILED, "model_error", "litellm.RateLimitError: 429 from the provider"),
    "time_limit": (OrderStatus.FAILED, "time_limit", "The time limit of 1800 s was reached."),
    "lost": (OrderStatus.FAILED, "lost", "lost: drone anna has not reported since 12:03 UTC; last of 3 attempts"),
    "canceled": (OrderStatus.CANCELED, "canceled", "canceled by kim: no longer needed"),
}


def add_agent(core: Core, caller: Caller, name: str, boss: str | None = None, **fields: Any) -> str:
    """An agent of the caller's organization; returns its id."""
    with core.database.write() as db:
        found = select(Agent.id).where(Agent.organization_id == caller.organization_id, Agent.name == boss)
        values = {"instructions": f"You are {name}.", "labels": {}, "created_at": core.clock.now()}
        agent = Agent(
            id=new_id(),
            organization_id=caller.organization_id,
            name=name,
            boss_id=db.scalar(found) if boss else None,
            **{**values, **fields},
        )
        db.add(agent)
    return agent.id


def edit_agent(core: Core, agent_id: str, **values: Any) -> None:
    with core.database.write() as db:
        agent = db.get_one(Agent, agent_id)
        for name, value in values.items():
            setattr(agent, name, value)


def edit_organization(core: Core, caller: Caller, **values: Any) -> None:
    with core.database.write() as db:
        organization = locked_organization(db, caller.organization_id)
        for name, value in values.items():
            setattr(organization, name, value)


def add_task(core: Core, caller: Caller, agent_id: str | None, *, claim: bool = True, **fields: Any) -> str:
    """An open task on the organization's only project; with `claim` it starts if it may. Returns its id."""
    project_slug = fields.pop("project", None)
    with core.database.write() as db:
        organization = locked_organization(db, caller.organization_id)
        organization.last_task += 1
        wanted = select(Project).where(Project.organization_id == organization.id, Project.removed_at.is_(None))
        project = db.scalars(wanted.where(Project.slug == project_slug) if project_slug else wanted).one()
        task_id = f"{organization.acronym}-{organization.last_task:04}"
        now = core.clock.now()
        chat = Chat(
            id=new_id(),
            organization_id=organization.id,
            project_id=project.id,
            name=task_id,
            mode=fields.get("mode", "build"),
            task_id=task_id,
            created_at=now,
        )
        db.add(chat)
        db.flush()
        values = {"title": "Mend it", "description": "Mend it.", "user": "kim", "limits": {}, "hand_offs": 0}
        moments = {"queued_at": now, "created_at": now, "updated_at": now}
        task = Task(
            id=task_id,
            organization_id=organization.id,
            number=organization.last_task,
            status=TaskStatus.OPEN.value,
            assignee_id=agent_id,
            project_id=project.id,
            session_id=chat.id,
            **{**values, **moments, **fields},
        )
        db.add(task)
        db.flush()
        if claim:
            claim_tasks(db, core, organization.id)
    return task_id


def claim(core: Core, caller: Caller) -> list[str]:
    with core.database.write() as db:
        return claim_tasks(db, core, caller.organization_id)


def task_of(core: Core, task_id: str) -> Task:
    with core.database.read() as db:
        return db.get_one(Task, task_id)


def assignee_of(core: Core, task_id: str) -> str:
    """The name of the agent, or `user`."""
    with core.database.read() as db:
        task = db.get_one(Task, task_id)
        return db.get_one(Agent, task.assignee_id).name if task.assignee_id else "user"


def order_of(core: Core, task_id: str) -> Order:
    """The order of the task's newest run."""
    with core.database.read() as db:
        return db.get_one(Order, db.get_one(Task, task_id).order_id)


def comments_of(core: Core, task_id: str) -> list[tuple[str, str, str]]:
    """Author, kind and text of each comment, in order."""
    with core.database.read() as db:
        rows = db.scalars(select(Comment).where(Comment.task_id == task_id).order_by(Comment.id))
        return [(row.author, row.kind, row.text) for row in rows]


def kinds_of(core: Core, task_id: str) -> list[str]:
    """The kinds of the system's comments, in order."""
    return [kind for author, kind, _ in comments_of(core, task_id) if author == "system"]


def say(core: Core, task_id: str, text: str) -> None:
    """The agent of the task's current run writes a comment."""
    order_id = order_of(core, task_id).id
    with core.database.write() as db:
        order = db.get_one(Order, order_id)
        write_as(db, core, order, str(order.run_id), text)


def write_as(db: Session, core: Core, order: Order, run_id: str, text: str) -> None:
    """A run of an order writes a comment, in this transaction."""
    agent_wrote(db, core, order, db.get_one(Run, run_id), text)


def play(core: Core, task_id: str, *comments: str, how: str = "succeeded") -> str:
    """Run the task's current order to its end: it writes the comments, then ends as `how`. Returns the order's id."""
    order_id = order_of(core, task_id).id
    begin(core, order_id)
    for text in comments:
        core.clock.sleep(1)
        say(core, task_id, text)
    core.clock.sleep(1)
    end(core, order_id, how)
    return order_id


def begin(core: Core, order_id: str) -> str:
    """Start the run of a task's placed order; return the run's id."""
    with core.database.write() as db:
        order = db.get_one(Order, order_id)
        order.started_at = order.started_at or core.clock.now()
    return start_run(core, order_id, agent_id=order.agent_id, task_id=order.task_id)


def end(core: Core, order_id: str, how: str = "succeeded") -> None:
    """End a run as the collector does."""
    to, exit_status, reason = ENDED[how]
    with core.database.write() as db:
        order = db.get_one(Order, order_id)
        if to is OrderStatus.CANCELED and order.status != OrderStatus.CANCELING:
            order.status = OrderStatus.CANCELING.value
        db.flush()
        run = db.get(Run, order.run_id)
        if run is not None:
            run.status = "success" if to is OrderStatus.SUCCEEDED else "failed"
        finish(db, core, order, to, Ending(exit_status, RunEnd(detail=reason)))
