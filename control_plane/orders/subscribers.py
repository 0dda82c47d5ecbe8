"""What follows from an order's end, in the transaction that ends it: webhooks, routing, what a service found."""

from __future__ import annotations

from sqlalchemy.orm import Session

from control_plane.automation.notices import notify
from control_plane.core import Core
from control_plane.db.orders import Order


def order_ended(db: Session, core: Core, order: Order) -> None:
    """Let everything happen that waited for this order, which has just got its last status."""
    # Here and not above: all of these write orders themselves, and so need the module that calls us.
    from control_plane.services import describing, pull_requests
    from control_plane.teams import hand_off

    match order.purpose:
        case "describe":
            describing.described(db, core, order)
        case "pull_request":
            pull_requests.ended(db, core, order)
        case _:
            notify(db, core, order.organization_id, f"order.{order.status}", _told(order))
            if order.task_id is not None:
                hand_off.run_ended(db, core, order)
            else:
                pull_requests.order_ended(db, core, order)


def _told(order: Order) -> dict[str, object]:
    return {
        "order": order.id,
        "status": order.status,
        "exit_status": order.exit_status,
        "reason": order.reason,
        "task": order.task_id,
        "branch": order.branch,
        "head_commit": order.head_commit,
        "pushed": order.pushed,
        "ended_at": order.ended_at.isoformat() if order.ended_at else None,
    }
