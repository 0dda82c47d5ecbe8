"""A safety net for tasks: each change that lets one begin claims it in its own transaction; this finds missed ones."""

from __future__ import annotations

from functools import partial

from sqlalchemy import select

from control_plane.core import Core
from control_plane.core.rows import each_alone
from control_plane.db.installation import Organization
from control_plane.db.teams import Task
from control_plane.teams.claiming import claim_tasks
from shared.states import TaskStatus


def claim_everywhere(core: Core) -> list[str]:
    """Begin every task that may begin, in all organizations; returns the new orders. No write if no task waits."""

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
