"""Sends the traces of ended orders to a receiver of OTLP, beside everything else, and again if that failed.

A trace is sent at least once: a process that dies between its acceptance and the record of that sends it again, with
the same ids. While the receiver is away, one request at a time is tried, with growing pauses.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Select, delete, select, update
from sqlalchemy.orm import Session

from control_plane.automation.webhook_delivery import DeliveryResult, OutgoingRequest, send
from control_plane.core import Core
from control_plane.core.daemon_threads import DaemonThreads
from control_plane.core.trace_receiver import CONTENT_TYPE, receiver_headers, traces_url
from control_plane.db.orders import Order
from control_plane.db.traces import TraceExport
from control_plane.tracing.otlp import rejected, requests_of
from control_plane.tracing.reading import spans_of
from control_plane.tracing.spans import trace_id
from shared.backoff import delay
from shared.terminal import logs

log = logs.get(__name__)

PATIENCE = timedelta(hours=24)
"""A trace that could not be sent for this long is given up."""
KEPT = timedelta(days=30)
"""How long traces that were given up are counted."""
RETRIES = (10.0, 60.0, 300.0, 900.0)
"""Seconds until a trace is tried again after each failure, with jitter; then always the last one."""
JITTER = 0.1
SECONDS = 10.0
"""For one request."""
LONGEST_REST = 60.0
AT_ONCE = 20
_LEASE = timedelta(seconds=120)
"""A process holds a trace for this long; then it is due again, as after a crash."""
_REFUSED = frozenset({400, 413, 422})
"""Statuses that say that this request is wrong: to repeat it does not help."""


def due(now: datetime) -> Select[TraceExport]:
    """The traces that are to be sent."""
    return select(TraceExport).where(*_waiting(now))


class TraceExporter:
    """Exports in a thread of its own, so that a receiver that hangs delays nothing else."""

    def __init__(self, core: Core, *, retries: Sequence[float] = RETRIES, seconds: float = SECONDS) -> None:
        endpoint = core.settings.otlp_endpoint
        self._url = traces_url(endpoint) if endpoint else ""
        self._headers = {"Content-Type": CONTENT_TYPE, **receiver_headers(core.settings.otlp_headers)}
        self._core = core
        self._retries = retries
        self._seconds = seconds
        self._busy = threading.Lock()
        self._closed = False
        self._threads = DaemonThreads()
        self._failures = 0
        self._resting_until = 0.0

    def export_due(self) -> None:
        """Begin to export what is due, unless that is already under way or the receiver was away just now."""
        if not self._url or self._busy.locked() or self._core.clock.monotonic() < self._resting_until:
            return
        if (waiting := self._due()) and self._busy.acquire(blocking=False):
            self._threads.start("traces", self._export, waiting)

    def round(self) -> None:
        """One complete round: export what is due, and wait until it is recorded."""
        self.export_due()
        self._threads.finish()

    def close(self) -> None:
        """Begin nothing more; a request that was sent finishes on its own."""
        self._closed = True

    def _due(self) -> Sequence[TraceExport]:
        oldest = due(self._core.clock.now())
        with self._core.database.read() as db:
            return db.scalars(oldest.order_by(TraceExport.next_at, TraceExport.number).limit(AT_ONCE)).all()

    def _export(self, waiting: Sequence[TraceExport]) -> None:
        try:
            for each in waiting:
                if self._closed:
                    return
                # What was never tried, because no supervisor ran, is tried however old it is.
                if each.attempts and each.ended_at < self._core.clock.now() - PATIENCE:
                    self._give_up(each)
                elif self._lease(each.number) and not self._exported(each.number):
                    return
        except Exception as error:
            # No code waits for this thread: what it held is due again when its lease expires.
            log.error("a trace could not be exported", exc_info=error)
        finally:
            self._busy.release()

    def _lease(self, number: int) -> bool:
        """Hold a trace for this process: of two supervisors, only one gets it. Counts the attempt."""
        one, until = update(TraceExport).where(TraceExport.number == number), self._core.clock.now() + _LEASE
        taken = one.where(*_waiting(self._core.clock.now())).values(attempts=TraceExport.attempts + 1, next_at=until)
        with self._core.database.write() as db:
            return db.scalar(taken.returning(TraceExport.number)) is not None

    def _exported(self, number: int) -> bool:
        """Send one trace and record the result; False if the receiver should have a rest."""
        with self._core.database.read() as db:
            export = db.get(TraceExport, number)
            if export is None:
                # Its organization was removed meanwhile.
                return True
            trace = _trace_of(db, export)
            bodies = list(requests_of(trace, spans_of(db, export)))
        with logs.bound(order=export.order_id, trace=trace.hex()):
            failed = self._sent(bodies)
            if failed is None or failed.status in _REFUSED:
                self._core.database.transact(lambda db: self._settle(db, number, failed))
                self._answers()
                return True
            self._core.database.transact(lambda db: self._postpone(db, number))
            self._rest(failed)
        return False

    def _sent(self, bodies: Sequence[bytes]) -> DeliveryResult | None:
        """Send all requests; the answer to the first that failed, or None."""
        for body in bodies:
            request = OutgoingRequest(self._url, self._headers, body)
            answer = send(request, inside_allowed=True, seconds=self._seconds)
            if answer.error:
                return answer
            self._note_rejected(answer)
        return None

    def _note_rejected(self, answer: DeliveryResult) -> None:
        """What a receiver accepted only in part must not be sent again, says the standard."""
        try:
            number, why = rejected(answer.body)
        except ValueError as error:
            log.debug("the receiver of traces gave no answer that can be read", why=str(error))
            return
        if number:
            log.warning("the receiver of traces rejected spans", spans=number, why=why[:300])

    def _settle(self, db: Session, number: int, failed: DeliveryResult | None) -> None:
        if failed is None:
            db.execute(delete(TraceExport).where(TraceExport.number == number))
            return
        log.error("a trace was given up", why=failed.error)
        self._mark_given_up(db, number)

    def _postpone(self, db: Session, number: int) -> None:
        export = db.get(TraceExport, number, with_for_update=True, populate_existing=True)
        if export is not None:
            pause = self._retries[min(export.attempts, len(self._retries)) - 1]
            pause *= 1 + random.uniform(-JITTER, JITTER)  # noqa: S311 - not a secret
            export.next_at = self._core.clock.now() + timedelta(seconds=pause)

    def _give_up(self, export: TraceExport) -> None:
        with self._core.database.write() as db:
            self._mark_given_up(db, export.number)
            trace = _trace_of(db, export)
        with logs.bound(order=export.order_id, trace=trace.hex()):
            log.error("a trace was given up", why=f"the receiver did not take it for {PATIENCE}")

    def _mark_given_up(self, db: Session, number: int) -> None:
        one = update(TraceExport).where(TraceExport.number == number)
        db.execute(one.values(given_up_at=self._core.clock.now()))

    def _rest(self, failed: DeliveryResult) -> None:
        """Log only the first of several failures; each makes the pause longer."""
        self._failures += 1
        if self._failures == 1:
            log.warning("traces cannot be exported", endpoint=self._core.settings.otlp_endpoint, why=failed.error)
        pause = min(delay(min(self._failures, 10), base=0.5), LONGEST_REST)
        self._resting_until = self._core.clock.monotonic() + pause

    def _answers(self) -> None:
        if self._failures:
            log.info("traces are exported again", after_failures=self._failures)
        self._failures, self._resting_until = 0, 0.0


def _waiting(now: datetime) -> tuple[ColumnElement[bool], ...]:
    return TraceExport.given_up_at.is_(None), TraceExport.next_at <= now


def _trace_of(db: Session, export: TraceExport) -> bytes:
    order = db.get(Order, export.order_id)
    return trace_id(export.order_id, order.traceparent if order is not None else None)


def clean_exports(db: Session, now: datetime) -> None:
    """Forget traces that were given up 30 days ago, or that have waited for longer since traces were turned off."""
    db.execute(delete(TraceExport).where(TraceExport.ended_at < now - KEPT - PATIENCE))
    db.execute(delete(TraceExport).where(TraceExport.given_up_at < now - KEPT))
