"""Reads what the trace of an ended order consists of, in one view of the database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.db.drones import Drone
from control_plane.db.groups import OrderGroup
from control_plane.db.installation import Organization
from control_plane.db.orders import Dispatch, Order
from control_plane.db.projects import Project
from control_plane.db.runs import Run, Step
from control_plane.db.traces import TraceExport
from control_plane.telemetry.tracing.order_spans import EndedOrder, TracedAttempt, order_spans, run_span_id
from control_plane.telemetry.tracing.run_spans import KINDS, RunSpans, TracedRun, TracedStep, body_of
from control_plane.telemetry.tracing.spans import AttributeValue, TraceSpan, root_id, trace_id
from shared.states import OrderStatus, RunStatus
from shared.trace_context import TraceParent

AT_ONCE = 200
"""Steps that are held in memory at a time."""
_FAILED_RUNS = frozenset({RunStatus.FAILED, RunStatus.LOST})


def spans_of(db: Session, export: TraceExport) -> list[TraceSpan]:
    """The spans of one end of an order; empty if the order was removed."""
    order = db.get(Order, export.order_id)
    if order is None:
        return []
    pairs = _dispatches(db, export)
    ended = _ended_order(db, export, order, pairs)
    spans = list(order_spans(ended))
    by_id = {each.id: each for each in spans}
    runs = {
        run.id: RunSpans(_traced(order, run, span))
        for _, run, _ in pairs
        if run is not None and (span := by_id.get(run_span_id(run.id))) is not None
    }
    for run_id, step in _steps(db, list(runs)):
        runs[run_id].take(step)
    return [*spans, *chain.from_iterable(run.end() for run in runs.values())]


def _dispatches(db: Session, export: TraceExport) -> list[tuple[Dispatch, Run | None, str]]:
    """The dispatches until this end, each with its run and the name of its drone."""
    wanted = (
        select(Dispatch, Run, Drone.name)
        .join(Drone, Drone.id == Dispatch.drone_id)
        .outerjoin(Run, Run.id == Dispatch.id)
        .where(Dispatch.order_id == export.order_id)
        .where(Dispatch.created_at >= export.began_at, Dispatch.created_at <= export.ended_at)
    )
    return [(dispatch, run, drone) for dispatch, run, drone in db.execute(wanted.order_by(Dispatch.generation))]


def _steps(db: Session, run_ids: Sequence[str]) -> Iterator[tuple[str, TracedStep]]:
    """The events of the runs, without those that came after a run had been given up."""
    wanted = select(Step.run_id, Step.run_seq, Step.at, Step.body).where(
        Step.run_id.in_(run_ids), Step.kind.in_(KINDS), Step.late.is_(False)
    )
    rows = db.execute(wanted.order_by(Step.run_id, Step.run_seq).execution_options(yield_per=AT_ONCE))
    for run_id, seq, at, body in rows:
        yield run_id, TracedStep(seq, at, body_of(body))


def _traced(order: Order, run: Run, span: TraceSpan) -> TracedRun:
    return TracedRun(
        id=run.id,
        span_id=span.id,
        began=span.began,
        ended=span.ended,
        model=order.model,
        session_id=order.session_id,
        silent_since=(run.beat_at or run.started_at) if run.status == RunStatus.LOST else None,
    )


def _ended_order(
    db: Session, export: TraceExport, order: Order, pairs: Sequence[tuple[Dispatch, Run | None, str]]
) -> EndedOrder:
    parent = TraceParent.read(order.traceparent or "")
    runs = [run for _, run, _ in pairs if run is not None]
    failed = export.status == OrderStatus.FAILED
    return EndedOrder(
        id=order.id,
        began=export.began_at,
        ended=export.ended_at,
        again=export.began_at > order.created_at,
        ended_in=export.run_id,
        attempts=[_attempt(dispatch, run, drone) for dispatch, run, drone in pairs],
        attributes={
            **_of_order(db, order),
            "dronefleet.order.status": export.status,
            "dronefleet.order.exit_status": export.exit_status,
            "dronefleet.drones": list(dict.fromkeys(drone for _, _, drone in pairs)),
            **_totals(runs),
        },
        error=(export.exit_status or "failed") if failed else "",
        parent=parent.span_id if parent is not None else b"",
        links=tuple(_links(db, order.after)),
    )


def _of_order(db: Session, order: Order) -> dict[str, AttributeValue | None]:
    group = db.get(OrderGroup, order.group_id) if order.group_id else None
    return {
        "dronefleet.order.id": order.id,
        "dronefleet.organization": db.get_one(Organization, order.organization_id).name,
        "dronefleet.project": db.get_one(Project, order.project_id).slug,
        "dronefleet.session.id": order.session_id,
        "dronefleet.task.id": order.task_id,
        "dronefleet.group.id": group.id if group is not None else None,
        "dronefleet.group.kind": group.kind if group is not None else None,
        "dronefleet.mode": order.mode,
        "dronefleet.model": order.model,
        "dronefleet.order.attempts": order.attempt,
    }


def _attempt(dispatch: Dispatch, run: Run | None, drone: str) -> TracedAttempt:
    attempt = TracedAttempt(dispatch.id, drone, dispatch.generation, dispatch.created_at, dispatch.closed_at)
    # A run whose first event came after it had been given up has no time of its own.
    if run is None or (dispatch.closed_at is not None and run.started_at >= dispatch.closed_at):
        return attempt
    about: Mapping[str, Any] = {
        "dronefleet.run.id": run.id,
        "dronefleet.run.attempt": run.attempt,
        "dronefleet.run.status": run.status,
        "dronefleet.run.exit_status": run.exit_status,
        "dronefleet.run.sandbox": run.sandbox or None,
        **_totals([run]),
    }
    error = (run.exit_status or run.status) if run.status in _FAILED_RUNS else ""
    return TracedAttempt(
        dispatch.id,
        drone,
        dispatch.generation,
        dispatch.created_at,
        dispatch.closed_at,
        run.started_at,
        run.ended_at,
        about,
        error,
    )


def _totals(runs: Sequence[Run]) -> dict[str, AttributeValue | None]:
    """What the runs used. A cost is left out if a price is unknown."""
    costs = [run.shown_cost_usd for run in runs]
    known = [cost for cost in costs if cost is not None]
    return {
        "dronefleet.cost_usd": sum(known) if len(known) == len(costs) else None,
        "dronefleet.tokens.input": sum(run.input_tokens for run in runs),
        "dronefleet.tokens.output": sum(run.output_tokens for run in runs),
        "dronefleet.tokens.thinking": sum(run.thinking_tokens for run in runs),
        "dronefleet.tokens.cached": sum(run.cached_tokens for run in runs),
        "dronefleet.tool_calls": sum(run.tool_calls for run in runs),
    }


def _links(db: Session, after: Sequence[str]) -> Iterator[tuple[bytes, bytes]]:
    """The spans of the orders that had to succeed first."""
    for id_, parent in db.execute(select(Order.id, Order.traceparent).where(Order.id.in_(after))):
        yield trace_id(id_, parent), root_id(id_)
