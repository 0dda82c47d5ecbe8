"""The outbox of webhooks: sends due messages, retries failed ones, and disables receivers that fail for days.

Delivery is at least once, with an id by which the receiver recognizes a repetition; the order of arrival is not
guaranteed. Several threads send at once, only a few of them to one receiver, so that a slow one delays only its own
messages.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import BindParameter, ColumnElement, Select, delete, exists, func, select, update
from sqlalchemy.orm import Session

from control_plane.automation.webhook_delivery import GONE, SECONDS, DeliveryResult, WebhookMessage, post
from control_plane.core import Core
from control_plane.core.daemon_threads import DaemonThreads
from control_plane.db.automation import TriggerDelivery, Webhook, WebhookDelivery
from shared.errors import FleetError
from shared.terminal import logs

log = logs.get(__name__)

RETRIES = (5.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 36_000.0)
"""Seconds after each failure, as Standard Webhooks suggests; with jitter, so that retries do not coincide."""
JITTER = 0.1
PATIENCE = timedelta(days=5)
"""A receiver that has only failed for this long is disabled."""
_QUIET = timedelta(hours=12)
"""More than the longest pause between two attempts: after as long without one, it is not known to have failed since."""
KEPT = timedelta(days=30)
REMEMBERED = timedelta(days=7)
"""How long incoming hook deliveries are kept, so that none counts twice."""
THREADS = 16
EACH = 2
"""Concurrent messages to one receiver."""
_LEASE = timedelta(seconds=4 * SECONDS)
"""A sender holds a message for this long; then it is due again, as after a crash."""


def due(now: datetime | BindParameter[datetime]) -> Select[str]:
    """The receiver of each message that is to be sent."""
    return (
        select(WebhookDelivery.webhook_id)
        .join(Webhook, Webhook.id == WebhookDelivery.webhook_id)
        .where(WebhookDelivery.done_at.is_(None), WebhookDelivery.next_at <= now, Webhook.enabled)
    )


class Sender:
    """Sends due messages. `seconds` is the time limit for one receiver."""

    def __init__(self, core: Core, *, retries: Sequence[float] = RETRIES, seconds: float = SECONDS) -> None:
        self._core = core
        self._retries = retries
        self._seconds = seconds
        self._lock = threading.Lock()
        self._busy: Counter[str] = Counter()
        self._threads = DaemonThreads()
        self._closed = False

    def send_due(self) -> None:
        """Start sending due messages, as far as threads are free."""
        for webhook_id in self._receivers():
            with self._lock:
                free = min(EACH - self._busy[webhook_id], THREADS - self._busy.total())
            for delivery_id in self._leased(webhook_id, free):
                self._begin(webhook_id, delivery_id)

    def round(self) -> None:
        """One complete round: send what is due, and wait until each answer is recorded."""
        self.send_due()
        self._threads.finish()

    def close(self) -> None:
        """Start nothing more; messages already being sent finish on their own."""
        self._closed = True

    def _receivers(self) -> Sequence[str]:
        """Receivers with due messages, the one that has waited longest first."""
        now = self._core.clock.now()
        oldest = due(now).group_by(WebhookDelivery.webhook_id).order_by(func.min(WebhookDelivery.next_at))
        with self._core.database.read() as db:
            return db.scalars(oldest).all()

    def _leased(self, webhook_id: str, most: int) -> list[str]:
        """Due messages to this receiver, now leased to this process: of two supervisors, only one gets each."""
        if most <= 0:
            return []
        now = self._core.clock.now()
        own = select(WebhookDelivery.id, WebhookDelivery.attempts).where(
            WebhookDelivery.webhook_id == webhook_id, *_is_due(now)
        )
        with self._core.database.read() as db:
            found = db.execute(own.order_by(WebhookDelivery.next_at).limit(most)).all()
        return [each for each, attempts in found if self._lease(each, attempts)]

    def _lease(self, delivery_id: str, attempts: int) -> bool:
        now = self._core.clock.now()
        seen = WebhookDelivery.id == delivery_id, WebhookDelivery.attempts == attempts, *_is_due(now)
        taken = update(WebhookDelivery).where(*seen).values(attempts=attempts + 1, next_at=now + _LEASE)
        with self._core.database.write() as db:
            return db.scalar(taken.returning(WebhookDelivery.id)) is not None

    def _begin(self, webhook_id: str, delivery_id: str) -> None:
        with self._lock:
            self._busy[webhook_id] += 1
        self._threads.start(f"webhook-{webhook_id}", self._send, webhook_id, delivery_id)

    def _send(self, webhook_id: str, first: str) -> None:
        """Send this message, and then any other due messages to its receiver."""
        waiting = [first]
        try:
            while waiting and not self._closed:
                send_one(self._core, waiting.pop(), self._retries, self._seconds)
                waiting = waiting or self._leased(webhook_id, 1)
        except Exception as error:
            # No code waits for this thread: its message is due again when the lease expires.
            log.error("a webhook message could not be processed", webhook=webhook_id, exc_info=error)
        finally:
            with self._lock:
                self._busy[webhook_id] -= 1


def _is_due(now: datetime) -> tuple[ColumnElement[bool], ...]:
    """Of a message: it is to be sent now. An answer to another may have disabled its receiver since the last look."""
    enabled = exists().where(Webhook.id == WebhookDelivery.webhook_id, Webhook.enabled)
    return WebhookDelivery.done_at.is_(None), WebhookDelivery.next_at <= now, enabled


def send_one(
    core: Core, delivery_id: str, retries: Sequence[float] = RETRIES, seconds: float = SECONDS
) -> DeliveryResult:
    """Send one message now and record the result; its attempt is already counted."""
    answer = _posted(core, delivery_id, seconds)

    def note(db: Session) -> None:
        of_it = select(Webhook).join(WebhookDelivery, WebhookDelivery.webhook_id == Webhook.id)
        # Lock the receiver's row first, in the same order as the removal of a webhook.
        webhook = db.scalars(of_it.where(WebhookDelivery.id == delivery_id).with_for_update(of=Webhook)).one()
        delivery = db.get_one(WebhookDelivery, delivery_id, with_for_update=True)
        if delivery.done_at is None:
            _note(webhook, delivery, answer, (core.clock.now(), retries))

    core.database.transact(note)
    return answer


def clean_deliveries(db: Session, now: datetime) -> None:
    """Delete messages accepted or given up 30 days ago, unfinished ones after 60 days, and hook deliveries after 7."""
    db.execute(delete(TriggerDelivery).where(TriggerDelivery.at < now - REMEMBERED))
    db.execute(delete(WebhookDelivery).where(WebhookDelivery.done_at < now - KEPT))
    db.execute(delete(WebhookDelivery).where(WebhookDelivery.created_at < now - 2 * KEPT))


def waiting_of(webhook_id: str) -> Select[str]:
    """The messages to a receiver that were neither accepted nor given up."""
    return select(WebhookDelivery.id).where(WebhookDelivery.webhook_id == webhook_id, WebhookDelivery.done_at.is_(None))


def _posted(core: Core, delivery_id: str, seconds: float) -> DeliveryResult:
    with core.database.read() as db:
        delivery = db.get_one(WebhookDelivery, delivery_id)
        webhook = db.get_one(Webhook, delivery.webhook_id)
    try:
        secret = core.vault.open_at_rest(webhook.sealed_secret, "webhooks.sealed_secret")
    except FleetError as error:
        return DeliveryResult(None, error.what)
    message = WebhookMessage(delivery.id, delivery.event, delivery.created_at, delivery.data, webhook.url, secret)
    return post(message, core.clock.now(), inside_allowed=core.settings.webhook_private, seconds=seconds)


def _note(
    webhook: Webhook, delivery: WebhookDelivery, answer: DeliveryResult, how: tuple[datetime, Sequence[float]]
) -> None:
    now, retries = how
    delivery.status_code, delivery.error = answer.status, answer.error
    if webhook.last_at is not None and now - webhook.last_at > _QUIET:
        webhook.failing_since = None
    webhook.last_at = now
    if not answer.error:
        delivery.done_at, delivery.next_at = now, None
        webhook.failing_since, webhook.last_error = None, ""
        return
    webhook.failing_since = webhook.failing_since or now
    webhook.last_error = answer.error
    if answer.status == GONE:
        _disable(webhook, "the receiver returned HTTP 410: it accepts no more messages")
    elif now - webhook.failing_since >= PATIENCE:
        _disable(
            webhook,
            f"every attempt since {webhook.failing_since:%Y-%m-%d %H:%M} UTC failed; last error: {answer.error}",
        )
    # Resent while it was being sent, it has no attempts.
    attempt = max(delivery.attempts, 1)
    if answer.status == GONE or attempt > len(retries):
        delivery.done_at, delivery.next_at = now, None
        if delivery.attempts > 1:
            delivery.error = f"gave up after {delivery.attempts} attempts; last error: {answer.error}"
    else:
        pause = retries[attempt - 1] * (1 + random.uniform(-JITTER, JITTER))  # noqa: S311 - not a secret
        delivery.next_at = now + timedelta(seconds=pause)


def _disable(webhook: Webhook, why: str) -> None:
    webhook.enabled, webhook.last_error = False, f"disabled: {why}"
