"""The outbox of attention: sends due messages in threads of their own, retries failed ones, and gives up after hours.

Delivery is at least once: a process that dies between the acceptance of a message and the record of it sends the
message again, with the same id. What is over by the time of an attempt is not sent.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import BindParameter, Select, delete, select, update
from sqlalchemy.orm import Session

from control_plane.attention.answer_links import clean_links
from control_plane.attention.contents import MessageContent, content_of
from control_plane.attention.mail import send_mail
from control_plane.attention.push import send_push
from control_plane.attention.recipients import Recipient, recipient
from control_plane.attention.sending import SECONDS, SendResult
from control_plane.automation.webhook_delivery import WebhookMessage, post
from control_plane.core import Core
from control_plane.core.daemon_threads import DaemonThreads
from control_plane.db.attention import AttentionChoices, AttentionMessage, AttentionNotice, PushSubscription
from shared.errors import FleetError
from shared.terminal import logs

log = logs.get(__name__)

RETRIES = (10.0, 60.0, 300.0, 1800.0, 7200.0, 14_400.0)
"""Seconds after each failure, with jitter; then the message is given up."""
JITTER = 0.1
THREADS = 8
KEPT = timedelta(days=30)
EVENT = "attention"
_LEASE = timedelta(seconds=4 * SECONDS)
"""A thread holds a message for this long; then it is due again, as after a crash."""


def due(now: datetime | BindParameter[datetime]) -> Select[str, int]:
    """Id and attempts of each message that is to be sent."""
    waiting = AttentionMessage.done_at.is_(None), AttentionMessage.next_at <= now
    return select(AttentionMessage.id, AttentionMessage.attempts).where(*waiting)


class Outbox:
    """Sends due messages, a few at once, so that a slow server delays only its own."""

    def __init__(self, core: Core, *, retries: Sequence[float] = RETRIES) -> None:
        self._core = core
        self._retries = retries
        self._free = threading.Semaphore(THREADS)
        self._closed = False
        self._threads = DaemonThreads()

    def send_due(self) -> None:
        """Begin to send what is due, as far as threads are free."""
        for message_id, attempts in self._due():
            if self._closed or not self._free.acquire(blocking=False):
                return
            if not lease(self._core, message_id, attempts):
                self._free.release()
                continue
            self._threads.start(f"attention-{message_id}", self._send, message_id)

    def round(self) -> None:
        """One complete round: send what is due, and wait until each result is recorded."""
        self.send_due()
        self._threads.finish()

    def close(self) -> None:
        """Begin nothing more; messages already being sent finish on their own."""
        self._closed = True

    def _due(self) -> list[tuple[str, int]]:
        oldest = due(self._core.clock.now()).order_by(AttentionMessage.next_at)
        with self._core.database.read() as db:
            return [(id, attempts) for id, attempts in db.execute(oldest.limit(THREADS))]

    def _send(self, message_id: str) -> None:
        try:
            send_one(self._core, message_id, self._retries)
        except Exception as error:
            # No code waits for this thread: the message is due again when its lease expires.
            log.error("a message to a user could not be processed", message=message_id, exc_info=error)
        finally:
            self._free.release()


def lease(core: Core, message_id: str, attempts: int) -> bool:
    """Hold a due message for this process: of two supervisors, only one gets it. Counts the attempt."""
    now = core.clock.now()
    seen = (
        AttentionMessage.id == message_id,
        AttentionMessage.attempts == attempts,
        AttentionMessage.done_at.is_(None),
        AttentionMessage.next_at <= now,
    )
    taken = update(AttentionMessage).where(*seen).values(attempts=attempts + 1, next_at=now + _LEASE)
    with core.database.write() as db:
        return db.scalar(taken.returning(AttentionMessage.id)) is not None


def send_one(core: Core, message_id: str, retries: Sequence[float] = RETRIES) -> None:
    """Send one message, whose attempt is already counted, and record the result."""
    prepared = core.database.transact(lambda db: _prepared(db, core, message_id))
    result = _sent(core, prepared) if prepared else SendResult("")
    core.database.transact(lambda db: _note(db, core, message_id, result, retries))


def clean_attention(db: Session, core: Core, now: datetime) -> None:
    """Delete notices and messages that were settled 30 days ago, and expired answer links."""
    db.execute(delete(AttentionNotice).where(AttentionNotice.settled_at < now - KEPT))
    db.execute(delete(AttentionMessage).where(AttentionMessage.done_at < now - KEPT))
    clean_links(db, core)


@dataclass(frozen=True)
class _Prepared:
    """A message with all that is needed to send it, read in one transaction."""

    message: AttentionMessage
    to: Recipient
    choices: AttentionChoices
    subscription: PushSubscription | None
    content: MessageContent


def _prepared(db: Session, core: Core, message_id: str) -> _Prepared | None:
    """None if there is nothing to send any more: it is over, or its user or channel was removed."""
    message = db.get_one(AttentionMessage, message_id)
    to = recipient(db, message.organization_id, message.user_id)
    choices = db.get(AttentionChoices, (message.organization_id, message.user_id))
    subscription = db.get(PushSubscription, message.subscription_id) if message.subscription_id else None
    wanted = choices is not None and {
        "email": choices.email,
        "webhook": bool(choices.webhook_url),
        "push": subscription is not None,
    }.get(message.channel)
    if to is None or choices is None or not wanted:
        return None
    told = select(AttentionNotice).where(AttentionNotice.batch == message.batch).order_by(AttentionNotice.number)
    content = content_of(db, core, to, db.scalars(told).all())
    return _Prepared(message, to, choices, subscription, content) if content else None


def _sent(core: Core, prepared: _Prepared) -> SendResult:
    try:
        if prepared.message.channel == "email":
            return send_mail(core, prepared.message, prepared.to.email, prepared.content)
        if prepared.subscription is not None:
            sealed = prepared.subscription.sealed_subscription
            subscription = json.loads(core.vault.open_at_rest(sealed, "push_subscriptions.sealed_subscription"))
            return send_push(core, prepared.message, subscription, prepared.content)
        return _posted(core, prepared)
    except FleetError as error:
        return SendResult(error.what)


def _posted(core: Core, prepared: _Prepared) -> SendResult:
    choices, message = prepared.choices, prepared.message
    secret = core.vault.open_at_rest(choices.sealed_webhook_secret or "", "attention_choices.sealed_webhook_secret")
    data = prepared.content.document()
    to_post = WebhookMessage(message.id, EVENT, message.created_at, data, choices.webhook_url or "", secret)
    answer = post(to_post, core.clock.now(), inside_allowed=core.settings.webhook_private)
    return SendResult(answer.error)


def _note(db: Session, core: Core, message_id: str, result: SendResult, retries: Sequence[float]) -> None:
    now = core.clock.now()
    message = db.get_one(AttentionMessage, message_id, with_for_update=True, populate_existing=True)
    _note_channel(db, message, result, now)
    if not result.error:
        message.error, message.done_at, message.next_at = "", now, None
    elif result.final or result.gone or message.attempts > len(retries):
        message.error = f"gave up after {message.attempts} attempts; last error: {result.error}"
        message.done_at, message.next_at = now, None
    else:
        message.error = result.error
        pause = retries[message.attempts - 1] * (1 + random.uniform(-JITTER, JITTER))  # noqa: S311 - not a secret
        message.next_at = now + timedelta(seconds=pause)


def _note_channel(db: Session, message: AttentionMessage, result: SendResult, now: datetime) -> None:
    """Show the user how the last attempt ended; a browser that ended its subscription is removed."""
    if message.subscription_id is not None:
        if result.gone:
            db.execute(delete(PushSubscription).where(PushSubscription.id == message.subscription_id))
            return
        browser = update(PushSubscription).where(PushSubscription.id == message.subscription_id)
        db.execute(browser.values(last_error=result.error, last_at=now))
        return
    column = {"email": "email_error", "webhook": "webhook_error"}[message.channel]
    own = AttentionChoices.organization_id == message.organization_id, AttentionChoices.user_id == message.user_id
    db.execute(update(AttentionChoices).where(*own).values({column: result.error}))
