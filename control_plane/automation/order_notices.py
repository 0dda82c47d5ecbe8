"""Webhook notices about orders, written in the transaction of the change they report."""

from __future__ import annotations

from sqlalchemy.orm import Session

from control_plane.automation.notices import notify
from control_plane.core import Core
from control_plane.db.orders import Order
from control_plane.orders.outcomes import outcome_of
from control_plane.orders.races import race_of


def order_ended(db: Session, core: Core, order: Order) -> None:
    """Report the end of an order; the small services of the control plane are not reported."""
    if order.purpose != "work":
        return
    data = {
        "order": order.id,
        "status": order.status,
        "exit_status": order.exit_status,
        "outcome": outcome_of(order, in_race=race_of(db, order) is not None),
        "reason": order.reason,
        "task": order.task_id,
        "branch": order.branch,
        "head_commit": order.head_commit,
        "pushed": order.pushed,
        "ended_at": order.ended_at.isoformat() if order.ended_at else None,
    }
    notify(db, core, order.organization_id, f"order.{order.status}", data)


def order_waits_for_person(db: Session, core: Core, order: Order, tool: str) -> None:
    """Report that a call of `tool` waits for a person."""
    data = {"order": order.id, "task": order.task_id, "reason": order.reason, "tool": tool}
    notify(db, core, order.organization_id, "order.awaiting_approval", data)
