"""The trace of an order: its span, and below it, one after the other without a hole, how it waited and ran."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from control_plane.telemetry.tracing.spans import Attributes, TraceSpan, root_id, span_id


@dataclass(frozen=True)
class TracedAttempt:
    """A dispatch of the order to a drone, with its run if it began one before it was taken back."""

    dispatch_id: str
    drone: str
    generation: int
    dispatched_at: datetime
    closed_at: datetime | None
    run_began_at: datetime | None = None
    run_ended_at: datetime | None = None
    run_attributes: Attributes | None = None
    run_error: str = ""


@dataclass(frozen=True)
class EndedOrder:
    """An order from its submission, or from when a person had it run again, to its end."""

    id: str
    began: datetime
    ended: datetime
    again: bool
    """It had ended before: its first span is in the trace already."""
    ended_in: str | None
    """The dispatch that had it at its end; None: it was queued."""
    attempts: Sequence[TracedAttempt]
    attributes: Attributes
    error: str = ""
    parent: bytes = b""
    """The span of its sender; empty: it has a trace of its own."""
    links: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def span_id(self) -> bytes:
        """Of its span; one that ran again has another, below the first."""
        return span_id(self.id, "order", self.began.isoformat()) if self.again else root_id(self.id)


def run_span_id(run_id: str) -> bytes:
    """The span of a run."""
    return span_id(run_id, "run")


def order_spans(order: EndedOrder) -> Iterator[TraceSpan]:
    """The order's span and its children; those of its runs are the parents of what `run_spans` returns."""
    parent = root_id(order.id) if order.again else order.parent
    remote = bool(order.parent) and not order.again
    yield TraceSpan(
        "order",
        order.span_id,
        parent,
        order.began,
        order.ended,
        order.attributes,
        order.error,
        order.links,
        remote_parent=remote,
    )
    since = order.began
    for number, attempt in enumerate(order.attempts):
        until = min(max(attempt.dispatched_at, since), order.ended)
        if number == 0 or until > since:
            yield _child(order, "queued", (attempt.dispatch_id, "queued"), (since, until))
        last = order.ended_in == attempt.dispatch_id
        since = yield from _attempt(order, attempt, until, last=last)
    if since < order.ended or not order.attempts:
        yield _child(order, "queued", (order.id, "queued", order.began.isoformat()), (since, order.ended))


def _attempt(
    order: EndedOrder, attempt: TracedAttempt, since: datetime, *, last: bool
) -> Generator[TraceSpan, None, datetime]:
    """`dispatched`, and the run; returns when it was over: at the order's own end, if that was the end."""
    over = order.ended if last else attempt.run_ended_at or attempt.closed_at or order.ended
    over = min(max(over, since), order.ended)
    about: Attributes = {"dronefleet.drone.name": attempt.drone, "dronefleet.generation": attempt.generation}
    key = (attempt.dispatch_id, "dispatched")
    if attempt.run_began_at is None:
        yield _child(order, "dispatched", key, (since, over), about)
        return over
    began = min(max(attempt.run_began_at, since), over)
    yield _child(order, "dispatched", key, (since, began), about)
    attributes = {**about, **(attempt.run_attributes or {})}
    id_ = run_span_id(attempt.dispatch_id)
    yield TraceSpan("run", id_, order.span_id, began, over, attributes, attempt.run_error)
    return over


def _child(
    order: EndedOrder,
    name: str,
    key: tuple[object, ...],
    time: tuple[datetime, datetime],
    attributes: Attributes | None = None,
) -> TraceSpan:
    return TraceSpan(name, span_id(*key), order.span_id, *time, attributes or {})
