"""Sends the traces of ended orders to a receiver of OTLP, beside everything else, and again if that failed.

A trace is sent at least once: a process that dies between its acceptance and the record of that sends it again, with
the same ids. While the receiver is away, one request at a time is tried, with growing pauses.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2 as wire
from sqlalchemy import BindParameter, ColumnElement, Select, delete, select, update
from sqlalchemy.orm import Session

from control_plane.automation.webhook_delivery import DeliveryResult, OutgoingRequest, send
from control_plane.core import Core
from control_plane.core.daemon_threads import DaemonThreads
from control_plane.core.trace_receiver import CONTENT_TYPE, receiver_headers, traces_url
from control_plane.db.orders import Order
from control_plane.db.traces import TraceExport
from control_plane.telemetry.tracing.reading import spans_of
from control_plane.telemetry.tracing.spans import Attributes, AttributeValue, TraceSpan, trace_id
from shared.backoff import delay
from shared.terminal import logs
from shared.terminal.command_line import version

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


def due(now: datetime | BindParameter[datetime]) -> Select[TraceExport]:
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
            bodies = list(_requests_of(trace, spans_of(db, export)))
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
            number, why = _rejected(answer.body)
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


def _waiting(now: datetime | BindParameter[datetime]) -> tuple[ColumnElement[bool], ...]:
    return TraceExport.given_up_at.is_(None), TraceExport.next_at <= now


def _trace_of(db: Session, export: TraceExport) -> bytes:
    order = db.get(Order, export.order_id)
    return trace_id(export.order_id, order.traceparent if order is not None else None)


def clean_exports(db: Session, now: datetime) -> None:
    """Forget traces that were given up 30 days ago, or that have waited for longer since traces were turned off."""
    db.execute(delete(TraceExport).where(TraceExport.ended_at < now - KEPT - PATIENCE))
    db.execute(delete(TraceExport).where(TraceExport.given_up_at < now - KEPT))


# --- spans as messages of OTLP --------------------------------------------------------------------

_AT_ONCE = 500
"""Spans in one request."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS = {"internal": wire.Span.SPAN_KIND_INTERNAL, "client": wire.Span.SPAN_KIND_CLIENT}
_SAMPLED = 0x01
_LOCAL, _REMOTE = 0x100, 0x300
"""Bits of the flags: whether the parent is in another process is known, and it is so."""


def _requests_of(trace: bytes, spans: Sequence[TraceSpan]) -> Iterator[bytes]:
    """The bodies of the requests that send all spans, in order."""
    for start in range(0, len(spans), _AT_ONCE):
        some = wire.ScopeSpans(
            scope=InstrumentationScope(name="dronefleet", version=version()),
            spans=[_span(trace, each) for each in spans[start : start + _AT_ONCE]],
        )
        about = {"service.name": "dronefleet", "service.version": version()}
        resource = Resource(attributes=list(_attributes(about)))
        message = ExportTraceServiceRequest(resource_spans=[wire.ResourceSpans(resource=resource, scope_spans=[some])])
        yield message.SerializeToString()


def _rejected(answer: bytes) -> tuple[int, str]:
    """How many spans of an accepted request were not taken, and why. Raises ValueError if this is no answer."""
    try:
        partial = ExportTraceServiceResponse.FromString(answer).partial_success
    except Exception as error:
        # protobuf's own DecodeError, which has no types.
        raise ValueError("the answer is not in protobuf") from error
    return partial.rejected_spans, partial.error_message


def _span(trace: bytes, span: TraceSpan) -> wire.Span:
    attributes = {**span.attributes, "error.type": span.error or None}
    code = wire.Status.STATUS_CODE_ERROR if span.error else wire.Status.STATUS_CODE_UNSET
    return wire.Span(
        trace_id=trace,
        span_id=span.id,
        parent_span_id=span.parent,
        flags=_SAMPLED | (_REMOTE if span.remote_parent else _LOCAL),
        name=_text(span.name),
        kind=_KINDS[span.kind],
        start_time_unix_nano=_nanoseconds(span.began),
        end_time_unix_nano=_nanoseconds(span.ended),
        attributes=list(_attributes(attributes)),
        links=[wire.Span.Link(trace_id=of, span_id=to, flags=_SAMPLED | _LOCAL) for of, to in span.links],
        status=wire.Status(code=code, message=_text(span.error)),
    )


def _attributes(attributes: Attributes) -> Iterator[KeyValue]:
    for name, value in attributes.items():
        if value is not None:
            yield KeyValue(key=name, value=_value(value))


def _value(value: AttributeValue) -> AnyValue:
    match value:
        case str():
            return AnyValue(string_value=_text(value))
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
    return AnyValue(array_value=ArrayValue(values=[AnyValue(string_value=_text(each)) for each in value]))


def _text(text: str) -> str:
    """Models may write half of a surrogate pair, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


def _nanoseconds(at: datetime) -> int:
    """Since 1970, exactly: as a float it would lose microseconds."""
    return (at - _EPOCH) // timedelta(microseconds=1) * 1000
