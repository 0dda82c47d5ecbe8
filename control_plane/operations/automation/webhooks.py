"""Webhooks: URLs that receive signed notifications of events that users wait for. For admins; viewers may read."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from sqlalchemy import Select, func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control_plane.automation.incoming_signatures import check_signing_secret, new_hook_secret
from control_plane.automation.webhook_addresses import check_url
from control_plane.automation.webhook_outbox import send_one, waiting_of
from control_plane.contract.declarations import webhooks as declared
from control_plane.contract.declarations.webhooks import (
    WebhookDeliveryDocument,
    WebhookDocument,
    WebhookEdit,
    WebhookRequest,
)
from control_plane.contract.validation.checks import check_name, shown, unknown
from control_plane.core import Caller, Core
from control_plane.db.automation import Webhook, WebhookDelivery
from control_plane.operations.gateway import performs
from control_plane.operations.row_documents import document_of
from shared.errors import Conflict, Invalid, NotFound
from shared.names import new_id
from shared.states import NOTICES

TEST = "fleet.test"


@performs(declared.ADD)
def create(core: Core, caller: Caller, request: WebhookRequest) -> WebhookDocument:
    """Create a webhook. Only this answer contains its secret.

    Raises Invalid for a URL that is not allowed, Conflict for a name that is taken.
    """
    secret = new_hook_secret("standard") if request.secret is None else check_signing_secret(request.secret)
    row = Webhook(
        id=new_id(),
        organization_id=caller.organization_id,
        **columns_of(request, inside_allowed=core.settings.webhook_private),
        sealed_secret=core.vault.seal_at_rest(secret, "webhooks.sealed_secret"),
        enabled=True,
        last_error="",
        created_at=core.clock.now(),
    )
    try:
        with core.database.write() as db:
            db.add(row)
    except IntegrityError as error:
        raise Conflict(
            f"webhook {shown(row.name)} already exists",
            code="E-WEBHOOK-NAME",
            next=f"fleet webhook edit {row.name}",
        ) from error
    return _document(row, 0, secret)


@performs(declared.LIST)
def list_(core: Core, caller: Caller) -> list[WebhookDocument]:
    """All webhooks of the organization by name, without their secrets."""
    with core.database.read() as db:
        rows = db.scalars(_alive(caller.organization_id).order_by(Webhook.name)).all()
        return [_document(row, _waiting(db, row)) for row in rows]


@performs(declared.SHOW)
def show(core: Core, caller: Caller, name: str) -> WebhookDocument:
    """One webhook, without its secret. Raises NotFound with similar names."""
    with core.database.read() as db:
        row = find_webhook(db, caller.organization_id, name)
        return _document(row, _waiting(db, row))


@performs(declared.EDIT)
def edit(core: Core, caller: Caller, name: str, changes: WebhookEdit) -> WebhookDocument:
    """Change the fields that are set. Switching a webhook on again clears its errors; waiting messages are kept."""

    def work(db: Session) -> WebhookDocument:
        row = find_webhook(db, caller.organization_id, name, lock=True)
        if changes.url is not None:
            row.url = check_url(changes.url, inside_allowed=core.settings.webhook_private)
        if changes.secret is not None:
            row.sealed_secret = core.vault.seal_at_rest(check_signing_secret(changes.secret), "webhooks.sealed_secret")
        row.events = _checked_events(changes.events) if changes.events is not None else row.events
        if changes.enabled is not None and changes.enabled is not row.enabled:
            row.enabled, row.failing_since, row.last_error = changes.enabled, None, ""
        return _document(row, _waiting(db, row))

    return core.database.transact(work)


@performs(declared.REMOVE)
def remove(core: Core, caller: Caller, name: str) -> WebhookDocument:
    """Remove a webhook; its waiting messages are no longer sent."""

    def work(db: Session) -> WebhookDocument:
        row = find_webhook(db, caller.organization_id, name, lock=True)
        row.removed_at, row.enabled = core.clock.now(), False
        waiting = update(WebhookDelivery).where(WebhookDelivery.id.in_(waiting_of(row.id)))
        db.execute(waiting.values(done_at=row.removed_at, next_at=None, error="the webhook was removed"))
        return _document(row, 0)

    return core.database.transact(work)


@performs(declared.TEST)
def test(core: Core, caller: Caller, name: str) -> WebhookDeliveryDocument:
    """Send `fleet.test` now, once, even if the webhook is switched off, and return the result."""
    now = core.clock.now()
    with core.database.write() as db:
        row = find_webhook(db, caller.organization_id, name)
        delivery = WebhookDelivery(
            id=f"msg_{new_id()}{new_id()}",
            organization_id=row.organization_id,
            webhook_id=row.id,
            event=TEST,
            data={"webhook": row.name, "organization": caller.organization, "user": caller.user},
            attempts=1,
            error="",
            created_at=now,
        )
        db.add(delivery)
    send_one(core, delivery.id, retries=())
    with core.database.read() as db:
        return document_of(WebhookDeliveryDocument, db.get_one(WebhookDelivery, delivery.id))


@performs(declared.DELIVERIES)
def deliveries(core: Core, caller: Caller, name: str, limit: int = 100) -> list[WebhookDeliveryDocument]:
    """The latest messages to the webhook, newest first."""
    with core.database.read() as db:
        row = find_webhook(db, caller.organization_id, name)
        newest = select(WebhookDelivery).where(WebhookDelivery.webhook_id == row.id)
        newest = newest.order_by(WebhookDelivery.created_at.desc(), WebhookDelivery.id).limit(limit)
        return [document_of(WebhookDeliveryDocument, each) for each in db.scalars(newest)]


@performs(declared.RESEND)
def resend(core: Core, caller: Caller, name: str, message: str) -> WebhookDeliveryDocument:
    """Make a message due now, with the same ID and all attempts available again.

    Raises NotFound for an unknown message, Conflict if the webhook is switched off.
    """

    def work(db: Session) -> WebhookDeliveryDocument:
        row = find_webhook(db, caller.organization_id, name, lock=True)
        wanted = select(WebhookDelivery).where(WebhookDelivery.id == message, WebhookDelivery.webhook_id == row.id)
        delivery = db.scalar(wanted.with_for_update())
        if delivery is None:
            raise NotFound(
                f"webhook {row.name} has no message {shown(message)}",
                code="E-WEBHOOK-MESSAGE",
                next=f"fleet webhook deliveries {row.name}",
            )
        if not row.enabled:
            raise Conflict(
                f"webhook {row.name} is disabled", code="E-WEBHOOK-OFF", next=f"fleet webhook edit {row.name} --on"
            )
        delivery.attempts, delivery.status_code, delivery.error = 0, None, ""
        delivery.next_at, delivery.done_at = core.clock.now(), None
        return document_of(WebhookDeliveryDocument, delivery)

    return core.database.transact(work)


def find_webhook(db: Session, organization_id: str, name: str, *, lock: bool = False) -> Webhook:
    """The webhook with this name; `lock` locks its row until the commit.

    Raises NotFound with similar names.
    """
    wanted = _alive(organization_id).where(Webhook.name == name)
    row = db.scalar(wanted.with_for_update() if lock else wanted)
    if row is None:
        known = [each.name for each in db.scalars(_alive(organization_id))]
        raise unknown("webhook", name, known, "fleet webhook ls")
    return row


def _alive(organization_id: str) -> Select[Webhook]:
    return select(Webhook).where(Webhook.organization_id == organization_id, Webhook.removed_at.is_(None))


def _waiting(db: Session, row: Webhook) -> int:
    return db.scalar(select(func.count()).select_from(waiting_of(row.id).subquery())) or 0


def columns_of(request: WebhookRequest, *, inside_allowed: bool) -> dict[str, Any]:
    """What the request sets, besides the secret. Raises Invalid."""
    return {
        "name": check_name("webhook", request.name),
        "url": check_url(request.url, inside_allowed=inside_allowed),
        "events": _checked_events(request.events),
    }


def _checked_events(events: list[str]) -> list[str]:
    for event in events:
        if event not in NOTICES:
            near = get_close_matches(event[:64], NOTICES, n=3, cutoff=0.5)
            raise Invalid(
                f"unknown webhook event {shown(event)}",
                code="E-WEBHOOK-EVENT",
                next=f"did you mean {' or '.join(near)}?" if near else f"expected one of: {', '.join(NOTICES)}",
            ).of(event)
    return list(dict.fromkeys(events))


def _document(row: Webhook, waiting: int, secret: str | None = None) -> WebhookDocument:
    return document_of(WebhookDocument, row, waiting=waiting, secret=secret)
