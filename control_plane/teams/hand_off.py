"""The end of an agent's run on a task: its last comment decides who is next (S-050 to S-055)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from control_plane.contract.documents.base import USER
from control_plane.core import Core
from control_plane.core.lookups.organizations import locked_organization
from control_plane.db.installation import Organization
from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.db.teams import Agent, Comment, Task
from control_plane.orders.status_changes import move_task
from control_plane.teams import system_notes
from control_plane.teams.claiming import claim_tasks, give_to_user
from control_plane.teams.routing import Decision, Read, Said, Situation, decide
from control_plane.teams.thread import system_says
from shared.outcome import ExitStatus
from shared.states import OrderStatus, TaskStatus

_AT_ONCE = 100


def order_ended(db: Session, core: Core, order: Order) -> None:
    """Route the task whose newest order has just ended, and begin what may begin now."""
    if order.task_id is None or order.purpose != "work":
        return
    organization = locked_organization(db, order.organization_id)
    lock = {"key_share": True}
    task = db.get_one(Task, order.task_id, with_for_update=lock, populate_existing=True)
    # If the task was preempted, canceled or continued meanwhile, this run decides nothing any more (S-055).
    if task.status == TaskStatus.IN_PROGRESS and task.order_id == order.id:
        _Ending(db, core, organization, task, order, db.get_one(Agent, order.agent_id)).settle()
    claim_tasks(db, core, order.organization_id)


@dataclass(frozen=True)
class _Ending:
    """The end of a task's current run, with the rows involved."""

    db: Session
    core: Core
    organization: Organization
    task: Task
    order: Order
    agent: Agent

    def settle(self) -> None:
        """Continue the task or give it back to the user, depending on how its run ended (S-083)."""
        match self.order.status:
            case OrderStatus.SUCCEEDED:
                self._route()
            case OrderStatus.CANCELED:
                self._give_back(TaskStatus.OPEN, system_notes.run_canceled(self.agent.name, self.order.reason))
            case _ if self.order.exit_status == ExitStatus.LOST:
                lost = system_notes.lost(self.agent.name, self.order.lost_runs, self.order.run_id)
                self._give_back(TaskStatus.FAILED, lost)
            case _:
                how = self.agent.name, self.order.exit_status or "", self.order.reason, self.order.run_id
                self._give_back(TaskStatus.FAILED, system_notes.failed(*how))

    def _give_back(self, to: TaskStatus, note: system_notes.Note) -> None:
        give_to_user(self.db, self.core, self.task, to, note, self.order.run_id)

    def _route(self) -> None:
        if self.order.exit_status == ExitStatus.MAX_ITERATIONS:
            self._say(system_notes.iteration_limit(self.agent.name, self.order.limits["max_iterations"]))
        last = self._last_comment()
        if last is None:
            self._say(system_notes.no_comment(self.agent.name))
        decision = decide(last, _newest_first(self.db, self.task.id), self._situation())
        if decision.to == USER:
            give_to_user(self.db, self.core, self.task, TaskStatus.OPEN, decision.note, self.order.run_id, last or "")
        else:
            self._hand_on(decision)

    def _hand_on(self, decision: Decision) -> None:
        """Assign the next agent; the task goes to the back of the queue (S-051)."""
        now = self.core.clock.now()
        to = _active(self.db, self.organization.id, decision.to)
        hand_offs = self.task.hand_offs + 1
        values = {"assignee_id": to.id, "queued_at": now, "updated_at": now, "hand_offs": hand_offs}
        move_task(self.db, self.task, TaskStatus.OPEN, **values)
        if decision.note is not None:
            self._say(decision.note)

    def _say(self, note: system_notes.Note) -> None:
        system_says(self.db, self.core, self.task, note, self.order.run_id)

    def _situation(self) -> Situation:
        alive = select(Agent.id, Agent.name).where(
            Agent.organization_id == self.organization.id, Agent.removed_at.is_(None)
        )
        names = {agent_id: name for agent_id, name in self.db.execute(alive)}
        return Situation(
            author=self.agent.name,
            agents=frozenset(names.values()),
            boss=names.get(self.agent.boss_id or ""),
            read=_read_until(self.db, self.task.id),
            hand_offs=self.task.hand_offs,
            max_hand_offs=self.organization.max_hand_offs,
        )

    def _last_comment(self) -> str | None:
        """The agent's last comment in this order, from any of its runs."""
        written = select(Comment.text).join(Run, Run.id == Comment.run_id)
        mine = written.where(
            Comment.task_id == self.task.id, Comment.agent_id == self.agent.id, Run.order_id == self.order.id
        )
        return self.db.scalar(mine.order_by(Comment.id.desc()).limit(1))


def _read_until(db: Session, task_id: str) -> dict[str, Read]:
    """For each agent that ran on the task, what it had read when its latest run was briefed.

    Until an order succeeds, no one but its run writes, and the system about it: what is older than its first comment
    was read. Beside an order that was stopped, the user writes, too, so that only the times tell.
    """
    first = select(func.min(Comment.id)).join(Run, Run.id == Comment.run_id)
    first = first.where(Comment.task_id == task_id, Run.order_id == Order.id).correlate(Order)
    ran = select(Agent.name, Order.created_at, Order.status, first.scalar_subquery())
    ran = ran.join(Agent, Agent.id == Order.agent_id).where(Order.task_id == task_id, Order.started_at.is_not(None))
    return {
        name: Read(at, before if status == OrderStatus.SUCCEEDED else None)
        for name, at, status, before in db.execute(ran.order_by(Order.number))
    }


def _newest_first(db: Session, task_id: str) -> Iterator[Said]:
    """The thread, newest comment first, read lazily in batches."""
    columns = select(Comment.id, Comment.author, Comment.text, Comment.at).where(Comment.task_id == task_id)
    before: int | None = None
    while True:
        older = columns if before is None else columns.where(Comment.id < before)
        rows = db.execute(older.order_by(Comment.id.desc()).limit(_AT_ONCE)).all()
        yield from (Said(*row) for row in rows)
        if len(rows) < _AT_ONCE:
            return
        before = rows[-1].id


def _active(db: Session, organization_id: str, name: str) -> Agent:
    return db.scalars(
        select(Agent).where(Agent.organization_id == organization_id, Agent.name == name, Agent.removed_at.is_(None))
    ).one()
