"""Status overview of an organization (S-122)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from control_plane.contract.declarations import organizations as declared
from control_plane.contract.declarations.organizations import StatusDocument
from control_plane.core import Caller, Core
from control_plane.db.installation import Organization
from control_plane.db.orders import Order
from control_plane.db.teams import Task
from control_plane.operations.budgets import pressing
from control_plane.operations.drones.managing import status_and_slots
from control_plane.operations.gateway import performs
from control_plane.orders import totals
from shared.states import ENDED, DroneStatus, OrderStatus, TaskStatus
from shared.terminal.command_line import version
from shared.work_order import GIVES_WAY

_WITH_A_RUN = (OrderStatus.RUNNING, OrderStatus.AWAITING_APPROVAL, OrderStatus.CANCELING)
_THERE = frozenset({DroneStatus.ONLINE, DroneStatus.BUSY})


@dataclass(frozen=True)
class CurrentCounts:
    """The present figures, without history."""

    organization: str
    paused: bool
    drones: Counter[str]
    """By status."""
    orders: dict[str, int]
    """Unfinished ones, by state."""
    active_runs: int
    max_concurrency: int
    """Of the drones that are online or busy."""


@performs(declared.STATUS)
def status(core: Core, caller: Caller) -> StatusDocument:
    """The number of drones, orders and tasks in each state, the number of active runs, and the total cost."""
    now, near = current_counts(core, caller), pressing(core, caller.organization_id)
    with core.database.read() as db:
        return StatusDocument(
            server=core.settings.url,
            version=version(),
            **vars(now),
            tasks=tasks_by_state(db, caller.organization_id),
            totals=totals.of_organization(db, caller.organization_id),
            budgets=near,
        )


def current_counts(core: Core, caller: Caller) -> CurrentCounts:
    """The part of `status` that every page shows: it reads nothing that has ended."""
    with core.database.read() as db:
        organization = db.get_one(Organization, caller.organization_id)
        drones = status_and_slots(db, core, caller.organization_id)
        orders = _orders(db, caller.organization_id)
    return CurrentCounts(
        organization=organization.name,
        paused=organization.paused_at is not None,
        drones=Counter(str(each) for each, _ in drones),
        orders=orders,
        active_runs=sum(orders.get(each, 0) for each in _WITH_A_RUN),
        max_concurrency=sum(slots for each, slots in drones if each in _THERE),
    )


def tasks_by_state(db: Session, organization_id: str) -> dict[str, int]:
    """The number of tasks in each state; every state has an entry."""
    counted = select(Task.status, func.count()).where(Task.organization_id == organization_id).group_by(Task.status)
    found = dict(db.execute(counted).all())
    return {each.value: found.get(each, 0) for each in TaskStatus}


def _orders(db: Session, organization_id: str) -> dict[str, int]:
    """The number of unfinished orders in each state."""
    open_ones = [each.value for each in OrderStatus if each not in ENDED]
    counted = select(Order.status, func.count()).where(
        Order.organization_id == organization_id, Order.status.in_(open_ones), Order.purpose.not_in(GIVES_WAY)
    )
    return dict(db.execute(counted.group_by(Order.status)).all())
