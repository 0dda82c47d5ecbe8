"""Why an open task assigned to an agent has not begun, in one sentence; derived from the rows, never stored."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.db.installation import Organization
from control_plane.db.orders import Order
from control_plane.db.teams import Agent, Task
from control_plane.teams.claiming import in_progress
from shared.states import ENDED, TaskStatus


def why_each_waits(db: Session, tasks: Sequence[Task]) -> dict[str, str]:
    """The sentence for each task of one organization, by task id; the number of queries is constant."""
    found = {task.id: "" for task in tasks}
    waiting = [task for task in tasks if task.status == TaskStatus.OPEN and task.assignee_id is not None]
    if not waiting:
        return found
    organization = db.get_one(Organization, waiting[0].organization_id)
    busy = in_progress(db, organization.id)
    agents = {each.id: each for each in db.scalars(select(Agent).where(Agent.organization_id == organization.id))}
    before = _unfinished(db, [task.order_id for task in waiting if task.order_id])
    for task in waiting:
        agent = agents[task.assignee_id or ""]
        found[task.id] = (
            _paused(organization)
            or _receipt(before.get(task.order_id or ""))
            or _organization_full(organization, busy.total())
            or _agent_full(agent, busy[agent.id])
            or f"about to start with {agent.name}"
        )
    return found


def _unfinished(db: Session, order_ids: Sequence[str]) -> dict[str, Order]:
    if not order_ids:
        return {}
    wanted = select(Order).where(Order.id.in_(order_ids), Order.status.not_in(ENDED))
    return {order.id: order for order in db.scalars(wanted)}


def _paused(organization: Organization) -> str:
    if organization.paused_at is None:
        return ""
    return f"organization {organization.name} is paused (next: fleet organization resume {organization.name})"


def _receipt(order: Order | None) -> str:
    if order is None:
        return ""
    return f"waiting for the previous run to end: order {order.id} is {order.status}: {order.reason}"


def _organization_full(organization: Organization, count: int) -> str:
    limit = organization.concurrency
    if not limit or count < limit:
        return ""
    next_ = f"fleet organization edit {organization.name} --concurrency N"
    return f"waiting for its turn: {count} of {limit} tasks are in progress (next: {next_})"


def _agent_full(agent: Agent, count: int) -> str:
    if not agent.concurrency or count < agent.concurrency:
        return ""
    next_ = f"fleet agent edit {agent.name} --concurrency N"
    return f"waiting for {agent.name}, which has {count} of {agent.concurrency} tasks in progress (next: {next_})"
