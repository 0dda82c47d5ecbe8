"""A user's choices: channels, and what to be told about."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from control_plane.attention.collecting import add_messages
from control_plane.attention.notices import Told, tell
from control_plane.attention.recipients import Recipient, channels_of, recipient
from control_plane.automation.incoming_signatures import check_signing_secret, new_hook_secret
from control_plane.automation.webhook_addresses import check_url
from control_plane.contract.declarations import attention as declared
from control_plane.contract.declarations.attention import (
    DEFAULT_KINDS,
    KINDS,
    AttentionDocument,
    AttentionEdit,
    BrowserDocument,
)
from control_plane.core import Caller, Core
from control_plane.core.push_keys import push_key
from control_plane.db.attention import AttentionChoices, AttentionMessage, AttentionNotice, PushSubscription
from control_plane.operations.gateway import performs
from control_plane.operations.row_documents import document_of
from shared.errors import Conflict, Forbidden, Invalid
from shared.names import new_id


@performs(declared.SHOW)
def show(core: Core, caller: Caller) -> AttentionDocument:
    """The caller's choices; until a change, the defaults. Raises Invalid for a token without a user."""
    with core.database.read() as db:
        to = require_recipient(db, caller)
        return _document(db, core, to, _choices(db, to))


@performs(declared.EDIT)
def edit(core: Core, caller: Caller, changes: AttentionEdit) -> AttentionDocument:
    """Change the fields that are set. Only this answer contains a generated secret. Raises Invalid, Conflict."""
    url = changes.webhook_url
    if url:
        check_url(url, inside_allowed=core.settings.webhook_private)
    if changes.email and core.settings.smtp_url is None:
        raise Conflict(
            "this server cannot send e-mail",
            code="E-ATTENTION-MAIL",
            next="ask its administrator to set FLEET_SMTP_URL and FLEET_MAIL_FROM",
        )

    def work(db: Session) -> AttentionDocument:
        to = require_recipient(db, caller)
        row = _choices(db, to, lock=True)
        db.add(row)
        if changes.email is not None:
            row.email, row.email_error = changes.email, ""
        if changes.kinds is not None:
            row.kinds = [each for each in KINDS if each in changes.kinds]
        row.about = changes.about or row.about
        secret = _set_webhook(core, row, changes)
        db.flush()
        return _document(db, core, to, row).model_copy(update={"secret": secret})

    return core.database.transact(work)


@performs(declared.TEST)
def test(core: Core, caller: Caller) -> AttentionDocument:
    """Write a test message for each channel; the supervisor sends it at once. Raises Conflict without a channel."""

    def work(db: Session) -> AttentionDocument:
        to = require_recipient(db, caller)
        row = _choices(db, to)
        if not channels_of(db, row):
            raise Conflict(
                "you chose no channel yet",
                code="E-ATTENTION-CHANNEL",
                next="fleet attention edit --email    or    fleet attention edit --webhook URL",
            )
        db.add(row)
        batch = new_id()
        text = f"This is how {core.settings.url} tells you of what waits for you."
        told = Told(to.organization_id, "orders", f"test:{batch}", "it works", text, "/")
        tell(db, core, told, [to.user_id])
        db.flush()
        notice = db.scalars(select(AttentionNotice).where(AttentionNotice.subject == told.subject)).one()
        notice.kind, notice.batch, notice.settled_at = "test", batch, core.clock.now()
        add_messages(db, core, row, batch)
        db.flush()
        return _document(db, core, to, row)

    return core.database.transact(work)


def require_recipient(db: Session, caller: Caller) -> Recipient:
    """The caller as a member of the organization. Raises Invalid for a token that belongs to no user."""
    if caller.user_id is None:
        raise Invalid(
            "your API token belongs to no user, who could be notified",
            code="E-ATTENTION-USER",
            next="ask an admin for: fleet api-token add --user USER --role ROLE",
        )
    to = recipient(db, caller.organization_id, caller.user_id)
    if to is None:
        raise Forbidden(
            f"you are not a member of organization {caller.organization}",
            code="E-ATTENTION-MEMBER",
            next=f"ask an admin for: fleet user add EMAIL --org {caller.organization}",
        )
    return to


def _choices(db: Session, to: Recipient, *, lock: bool = False) -> AttentionChoices:
    found = db.get(AttentionChoices, (to.organization_id, to.user_id), with_for_update=lock, populate_existing=lock)
    return found or AttentionChoices(
        organization_id=to.organization_id,
        user_id=to.user_id,
        email=False,
        kinds=list(DEFAULT_KINDS),
        about="own",
        email_error="",
        webhook_error="",
    )


def _set_webhook(core: Core, row: AttentionChoices, changes: AttentionEdit) -> str | None:
    """Set or remove the webhook; returns the secret if it was generated."""
    if "webhook_url" in changes.model_fields_set and changes.webhook_url != row.webhook_url:
        row.webhook_url, row.webhook_error = changes.webhook_url or None, ""
        # A new receiver must not know the old one's secret.
        row.sealed_webhook_secret = None
    if row.webhook_url is None:
        row.sealed_webhook_secret = None
        return None
    if changes.webhook_secret is not None:
        secret = check_signing_secret(changes.webhook_secret)
        row.sealed_webhook_secret = core.vault.seal_at_rest(secret, "attention_choices.sealed_webhook_secret")
        return None
    if row.sealed_webhook_secret is not None:
        return None
    secret = new_hook_secret("standard")
    row.sealed_webhook_secret = core.vault.seal_at_rest(secret, "attention_choices.sealed_webhook_secret")
    return secret


def _document(db: Session, core: Core, to: Recipient, row: AttentionChoices) -> AttentionDocument:
    own = AttentionMessage.organization_id == to.organization_id, AttentionMessage.user_id == to.user_id
    waiting = select(func.count()).select_from(AttentionMessage).where(*own, AttentionMessage.done_at.is_(None))
    browsers = select(PushSubscription).where(
        PushSubscription.organization_id == to.organization_id, PushSubscription.user_id == to.user_id
    )
    return AttentionDocument(
        email=row.email,
        email_address=to.email,
        email_available=core.settings.smtp_url is not None,
        email_error=row.email_error,
        webhook_url=row.webhook_url,
        webhook_error=row.webhook_error,
        browsers=[
            document_of(BrowserDocument, each) for each in db.scalars(browsers.order_by(PushSubscription.created_at))
        ],
        push_key=push_key(db).public_key,
        kinds=row.kinds,
        about=row.about,
        waiting=db.scalar(waiting) or 0,
    )
