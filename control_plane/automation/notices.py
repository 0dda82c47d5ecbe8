"""Webhook notices: one message per subscribed webhook, written in the transaction of the change it reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.automation import Webhook, WebhookDelivery
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
