"""Which events users are told of. Each function runs in the transaction of the event."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.attention.notices import Told, tell
from control_plane.attention.recipients import who_wants
from control_plane.contract.declarations.attention import AttentionKind
from control_plane.core import Core
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.db.spending import Budget
from control_plane.db.teams import Task
from control_plane.db.waits import Wait
from control_plane.orders.waits import QUESTION
from shared.amounts import dollars
from shared.states import OrderStatus
from shared.titles import title
from shared.work_order import CHECKS


def wait_opened(db: Session, core: Core, order: Order, wait: Wait) -> None:
    """A run asks for an approval, or asks a question."""
    kind: AttentionKind = "questions" if wait.kind == QUESTION else "approvals"
    told = Told(
        order.organization_id,
        kind,
        subject=f"wait:{wait.number}:{wait.asked_at.timestamp():.6f}",
        title=title(order.prompt),
        text=wait.text,
        page=f"/orders/{order.id}",
        wait_number=wait.number,
    )
    tell(db, core, told, who_wants(db, order.organization_id, kind, order.user_id))


def order_ended(db: Session, core: Core, order: Order) -> None:
    """An order ended, or a check failed. A task's order is not reported: the task is, when it is back with the user."""
    if order.purpose in CHECKS:
        _check_ended(db, core, order)
        return
    if order.purpose != "work" or order.task_id is not None or order.status == OrderStatus.CANCELED:
        return
    told = Told(
        order.organization_id,
        "orders",
        subject=f"order:{order.id}:{order.generation}:{order.status}",
        title=title(order.prompt),
        text=f"{order.status}: {order.reason}" if order.reason else order.status,
        page=f"/orders/{order.id}",
    )
    tell(db, core, told, who_wants(db, order.organization_id, "orders", order.user_id))


def _check_ended(db: Session, core: Core, order: Order) -> None:
    row = _checked(db, order)
    if row is None:
        return
    what, name, page = (
        ("project", row.slug, "/projects") if isinstance(row, Project) else ("model", row.name, "/models")
    )
    report = row.check_report or {}
    told = Told(
        order.organization_id,
        "checks",
        subject=f"check:{order.id}",
        title=f"Check of {what} {name} failed",
        text=str(report.get("summary") or order.reason),
        page=page,
    )
    tell(db, core, told, who_wants(db, order.organization_id, "checks", order.user_id))


def _checked(db: Session, order: Order) -> Provider | Project | None:
    """What the order found to be failing."""
    provider = select(Provider).where(Provider.check_order_id == order.id, Provider.check_state == "failed")
    project = select(Project).where(Project.check_order_id == order.id, Project.check_state == "failed")
    return db.scalar(provider) or db.scalar(project)


def task_returned(db: Session, core: Core, task: Task, reason: str) -> None:
    """A task was given back to its user."""
    now = core.clock.now()
    told = Told(
        task.organization_id,
        "tasks",
        subject=f"task:{task.id}:{now.timestamp():.6f}",
        title=task.title,
        text=reason,
        page=f"/tasks/{task.id}",
        task_id=task.id,
    )
    tell(db, core, told, who_wants(db, task.organization_id, "tasks", task.user_id))


def budget_used_up(db: Session, core: Core, budget: Budget, name: str, begins_at: datetime) -> None:
    """A budget is used up: no run of it begins until the next period, or until it is raised."""
    told = Told(
        budget.organization_id,
        "budgets",
        subject=f"budget:{budget.id}:{begins_at:%Y-%m-%d}:{budget.limit_nusd}",
        title=f"Budget of {budget.kind} {name} is used up",
        text=f"The limit is ${dollars(budget.limit_nusd):g} per {budget.per}. No further run begins.",
        page="/cost",
    )
    of_user = budget.kind == "user"
    owner = budget.target_id if of_user else None
    tell(db, core, told, who_wants(db, budget.organization_id, "budgets", owner, everyone=not of_user))
