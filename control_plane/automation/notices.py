"""Webhook notices: one message per subscribed webhook, written in the transaction of the change it reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.automation import Webhook, WebhookDelivery
from control_plane.db.orders import Order
from control_plane.orders.outcomes import outcome_of
from control_plane.orders.races import race_of
from shared.names import new_id


def notify(db: Session, core: Core, organization_id: str, event: str, data: Mapping[str, Any]) -> None:
    """Put `event` (of `shared.states.NOTICES`) into the outbox of every webhook of the organization that wants it.

    `data` is JSON. The supervisor sends the messages after the commit.
    """
    wanted = select(Webhook).where(
        Webhook.organization_id == organization_id, Webhook.removed_at.is_(None), Webhook.enabled
    )
    now = core.clock.now()
    for webhook in db.scalars(wanted).all():
        if not webhook.events or event in webhook.events:
            db.add(
                WebhookDelivery(
                    id=f"msg_{new_id()}{new_id()}",
                    organization_id=organization_id,
                    webhook_id=webhook.id,
                    event=event,
                    data=dict(data),
                    attempts=0,
                    created_at=now,
                    next_at=now,
                )
            )


def order_ended(db: Session, core: Core, order: Order) -> None:
    """Notify of the end of an order; the small services of the control plane are not reported."""
    if order.purpose != "work":
        return
    race = race_of(db, order)
    data = {
        "order": order.id,
        "status": order.status,
        "exit_status": order.exit_status,
        "outcome": outcome_of(order, may_push=race is None or race.winner_id == order.id),
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
