"""Which tasks begin now: urgent ones first, then the oldest (S-102), within the concurrency limits of the organization
and of each agent (S-101). Nothing polls: each change that may let a task begin calls this in its own transaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session

from control_plane.attention.events import task_returned
from control_plane.automation.notices import notify
from control_plane.core import Core
from control_plane.core.lookups.modes import mode_exists
from control_plane.core.lookups.organizations import locked_organization
from control_plane.core.rows import each_alone
from control_plane.db.installation import Organization
from control_plane.db.orders import Order
from control_plane.db.projects import Project
from control_plane.db.sessions import ChatSession as Chat
from control_plane.db.teams import Agent, Task
from control_plane.orders.draft import Draft, create_order
from control_plane.orders.reviewers import reviewer_by_default
from control_plane.orders.run_settings import OwnLimits
from control_plane.orders.status_changes import move_task
from control_plane.teams import system_notes
from control_plane.teams.agent_settings import provider_of
from control_plane.teams.briefing import briefing
from control_plane.teams.thread import system_says
from shared.states import ENDED, TaskStatus

_AT_ONCE = 50
_MAX_TOLD = 500
"""Characters of an agent's comment in a webhook message."""


def claim_tasks(db: Session, core: Core, organization_id: str) -> list[str]:
    """Begin every open task of the organization that may begin; returns the ids of the new orders.

    Takes the organization's row lock, so that each process counts the tasks that others began. Code that moves tasks
    itself takes the lock first (`locked_organization`). Announce the orders after the commit (`broker.changed`).
    """
    organization = locked_organization(db, organization_id)
    if organization.paused_at is not None:
        return []
    db.flush()
    return _Round(db, core, organization).begin_all()


class _Round:
    """One pass over the tasks of an organization whose row is locked."""

    def __init__(self, db: Session, core: Core, organization: Organization) -> None:
        self._db = db
        self._core = core
        self._organization = organization
        self._in_progress = in_progress(db, organization.id)
        self._agents = {agent.id: agent for agent in _agents(db, organization.id)}

    def begin_all(self) -> list[str]:
        begun: list[str] = []
        while wanted := min(self._room(), _AT_ONCE):
            tasks = self._candidates(wanted)
            for task in tasks:
                agent = self._agents[task.assignee_id or ""]
                if not self._full(agent):
                    begun += self._begin(task, agent)
            if len(tasks) < wanted:
                break
        return begun

    def _room(self) -> int:
        """How many more tasks may begin; without a limit, the size of one batch."""
        limit = self._organization.concurrency
        return max(0, limit - self._in_progress.total()) if limit else _AT_ONCE

    def _full(self, agent: Agent) -> bool:
        return 0 < agent.concurrency <= self._in_progress[agent.id]

    def _candidates(self, count: int) -> Sequence[Task]:
        """The next tasks that may begin. Skips tasks that another transaction is changing, as it claims them too."""
        full = [agent.id for agent in self._agents.values() if self._full(agent)]
        waiting = waiting_tasks(self._organization.id).where(_previous_run_ended(), Task.assignee_id.not_in(full))
        free = waiting.limit(count).with_for_update(skip_locked=True, key_share=True, of=Task)
        return self._db.scalars(free.execution_options(populate_existing=True)).all()

    def _begin(self, task: Task, agent: Agent) -> list[str]:
        """Write the agent's turn as an order; if that is impossible, a note to the user says why and what to do."""
        db, core = self._db, self._core
        project = db.get_one(Project, task.project_id)
        if agent.removed_at is not None:
            give_to_user(db, core, task, TaskStatus.OPEN, system_notes.agent_removed(agent.name))
            return []
        if project.removed_at is not None:
            return self._fail(task, agent, f"project {project.slug} was removed", "fleet task create … --project SLUG")
        chat = db.get_one(Chat, task.session_id)
        if not mode_exists(db, project, chat.mode):
            next_ = f"fleet mode add {chat.mode} --text TEXT, then: fleet task retry {task.id}"
            return self._fail(task, agent, f"mode {chat.mode} was removed", next_)
        provider = provider_of(db, agent, project)
        if provider is None:
            next_ = f"fleet agent edit {agent.name} --provider NAME, then: fleet task retry {task.id}"
            return self._fail(task, agent, _no_provider(agent, project), next_)
        draft = Draft(
            project=project,
            provider=provider,
            session=chat,
            prompt=briefing(db, task, agent),
            user=task.user,
            user_id=task.user_id,
            mode=chat.mode,
            model=agent.model,
            reviewer=reviewer_by_default(db, project, agent),
            own_limits=OwnLimits(task.limits, "task"),
            priority=task.priority,
            labels=agent.labels,
            agent_id=agent.id,
            task_id=task.id,
        )
        order = create_order(db, core, draft)
        move_task(db, task, TaskStatus.IN_PROGRESS, order_id=order.id, updated_at=core.clock.now())
        self._in_progress[agent.id] += 1
        return [order.id]

    def _fail(self, task: Task, agent: Agent, why: str, next_: str) -> list[str]:
        """Fail a task whose order cannot be written, and give it back to the user."""
        note = system_notes.cannot_begin(agent.name, agent.id, why, next_)
        move_task(self._db, task, TaskStatus.IN_PROGRESS)
        give_to_user(self._db, self._core, task, TaskStatus.FAILED, note)
        return []


def give_to_user(  # noqa: PLR0913, PLR0917 - the thread's entry takes three arguments
    db: Session,
    core: Core,
    task: Task,
    to: TaskStatus,
    note: system_notes.Note | None,
    run_id: str | None = None,
    said: str = "",
) -> None:
    """Give a task back to the user: `note` says why, or the agent's last comment does (`said`).

    Notifies webhooks with `task.failed` or `task.waiting`, and users who chose to be told of tasks.
    """
    move_task(db, task, to, assignee_id=None, updated_at=core.clock.now())
    if note is not None:
        system_says(db, core, task, note, run_id)
    data = {
        "task": task.id,
        "title": task.title,
        "status": task.status,
        "reason": note.text if note is not None else said[:_MAX_TOLD],
        "order": task.order_id,
        "run": run_id,
    }
    task_returned(db, core, task, str(data["reason"]))
    notify(db, core, task.organization_id, "task.failed" if to is TaskStatus.FAILED else "task.waiting", data)


def waiting_tasks(organization_id: str) -> Select[Task]:
    """The tasks that wait for their agent, in the order in which they will begin."""
    waits = Task.organization_id == organization_id, Task.status == TaskStatus.OPEN, Task.assignee_id.is_not(None)
    return select(Task).where(*waits).order_by(Task.priority.desc(), Task.queued_at, Task.number)


def in_progress(db: Session, organization_id: str) -> Counter[str]:
    """The number of tasks in progress, by agent id."""
    busy = select(Task.assignee_id, func.count()).where(
        Task.organization_id == organization_id, Task.status == TaskStatus.IN_PROGRESS
    )
    return Counter({agent_id: count for agent_id, count in db.execute(busy.group_by(Task.assignee_id)) if agent_id})


def _previous_run_ended() -> ColumnElement[bool]:
    """The task's last order has ended. Only then is the workspace free: a preempted run's receipt must have arrived."""
    unfinished = select(Order.id).where(Order.id == Task.order_id, Order.status.not_in(ENDED))
    return ~unfinished.exists()


def _agents(db: Session, organization_id: str) -> Sequence[Agent]:
    return db.scalars(select(Agent).where(Agent.organization_id == organization_id)).all()


def _no_provider(agent: Agent, project: Project) -> str:
    if agent.provider_id or project.provider_id:
        whose = f"agent {agent.name}" if agent.provider_id else f"project {project.slug}"
        return f"the provider of {whose} was removed"
    named = f"neither the agent nor project {project.slug} has a provider"
    return f"{named}, and the organization has none or more than one"


def claim_everywhere(core: Core) -> list[str]:
    """Begin every task that may begin, in all organizations; returns the new orders. No write if no task waits.

    A safety net: each change that lets a task begin claims it in its own transaction, and this finds missed ones.
    """

    def claim(organization_id: str) -> list[str]:
        return core.database.transact(partial(claim_tasks, core=core, organization_id=organization_id))

    begun = [order_id for each in each_alone("teams", _with_waiting_tasks(core), claim) for order_id in each]
    for order_id in begun:
        core.broker.changed(order_id)
    return begun


def _with_waiting_tasks(core: Core) -> list[str]:
    waits = Task.status == TaskStatus.OPEN, Task.assignee_id.is_not(None)
    waiting = select(Task.id).where(Task.organization_id == Organization.id, *waits).exists()
    with core.database.read() as db:
        return list(db.scalars(select(Organization.id).where(Organization.paused_at.is_(None), waiting)))
