"""Browsers that show notifications: each subscribes itself, and can be removed anywhere."""

from __future__ import annotations

import json

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from control_plane.attention.push import check_subscription
from control_plane.contract.declarations import attention as declared
from control_plane.contract.declarations.attention import DEFAULT_KINDS, BrowserDocument, PushRequest
from control_plane.contract.validation.checks import check_text, shown
from control_plane.contract.validation.issued_secrets import hashed
from control_plane.core import Caller, Core
from control_plane.db.attention import AttentionChoices, PushSubscription
from control_plane.operations.attention.choices import require_recipient
from control_plane.operations.gateway import performs
from control_plane.operations.row_documents import document_of
from shared.errors import Conflict, NotFound
from shared.names import new_id

MOST_BROWSERS = 20


@performs(declared.SUBSCRIBE)
def subscribe(core: Core, caller: Caller, request: PushRequest) -> BrowserDocument:
    """Add the browser. Raises Invalid for a subscription that cannot be used, Conflict for more than 20 browsers."""
    name = check_text("the name", request.name, limit=declared.MAX_BROWSER_NAME)
    subscription = {"endpoint": request.endpoint, "keys": {"p256dh": request.p256dh, "auth": request.auth}}
    check_subscription(core, subscription)
    row = PushSubscription(
        id=new_id(),
        organization_id=caller.organization_id,
        name=name,
        endpoint_hash=hashed(request.endpoint),
        sealed_subscription=core.vault.seal_at_rest(json.dumps(subscription), "push_subscriptions.sealed_subscription"),
        last_error="",
        created_at=core.clock.now(),
    )

    def work(db: Session) -> BrowserDocument:
        row.user_id = require_recipient(db, caller).user_id
        _ensure_choices(db, row)
        # A browser has one subscription, of the user who logged in with it last.
        db.execute(delete(PushSubscription).where(PushSubscription.endpoint_hash == row.endpoint_hash))
        _require_few(db, row)
        db.add(row)
        db.flush()
        return document_of(BrowserDocument, row)

    return core.database.transact(work)


@performs(declared.UNSUBSCRIBE)
def unsubscribe(core: Core, caller: Caller, browser: str) -> BrowserDocument:
    """Remove a browser of the caller. Raises NotFound."""

    def work(db: Session) -> BrowserDocument:
        to = require_recipient(db, caller)
        own = PushSubscription.user_id == to.user_id, PushSubscription.organization_id == to.organization_id
        row = db.scalar(select(PushSubscription).where(PushSubscription.id == browser, *own))
        if row is None:
            raise NotFound(f"browser {shown(browser)} not found", code="E-BROWSER-404", next="fleet attention show")
        document = document_of(BrowserDocument, row)
        db.delete(row)
        return document

    return core.database.transact(work)


def _ensure_choices(db: Session, row: PushSubscription) -> None:
    if db.get(AttentionChoices, (row.organization_id, row.user_id)) is None:
        db.add(
            AttentionChoices(
                organization_id=row.organization_id, user_id=row.user_id, email=False, kinds=list(DEFAULT_KINDS)
            )
        )


def _require_few(db: Session, row: PushSubscription) -> None:
    own = PushSubscription.user_id == row.user_id, PushSubscription.organization_id == row.organization_id
    count = db.scalar(select(func.count()).select_from(PushSubscription).where(*own)) or 0
    if count >= MOST_BROWSERS:
        raise Conflict(
            f"you have {count} browsers; {MOST_BROWSERS} are allowed",
            code="E-BROWSER-COUNT",
            next="remove one that you no longer use: fleet attention remove ID",
        )
