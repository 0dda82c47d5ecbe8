"""Total usage of runs, the only unit of cost; summed on demand (S-034)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from control_plane.contract.documents.totals import Totals
from control_plane.db.runs import Run
from shared.events import MAX_COUNT, MAX_DOLLARS, Stats

NOTHING = Totals(runs=0, input_tokens=0, output_tokens=0, cost_usd=0.0, unknown_costs=0, duration_ms=0)
_SUMS = (
    func.count(),
    func.count(Run.cost_usd),
    func.sum(Run.cost_usd + Run.assumed_usd),
    func.sum(Run.input_tokens),
    func.sum(Run.output_tokens),
    func.sum(Run.duration_ms),
)
"""The index `ix_runs_totals` covers all these columns: no run row is read for them."""
_MORE = func.sum(Run.tool_calls), func.sum(Run.thinking_tokens), func.sum(Run.cached_tokens)


def of_order(db: Session, order_id: str) -> Stats:
    """Total usage of all runs of an order, including late ones. No sum exceeds what one run can report."""
    return of_orders(db, [order_id])[order_id]


def of_orders(db: Session, order_ids: Collection[str]) -> dict[str, Stats]:
    """As `of_order`, for each of these orders, in one query; every order has an entry."""
    db.flush()
    summed = select(Run.order_id, *_SUMS, *_MORE).where(Run.order_id.in_(order_ids)).group_by(Run.order_id)
    found = {order_id: _stats(*sums) for order_id, *sums in db.execute(summed)} if order_ids else {}
    return {order_id: found.get(order_id) or Stats() for order_id in order_ids}


def of_tasks(db: Session, task_ids: Collection[str]) -> dict[str, Totals]:
    """The totals per task, in one query; every task has an entry."""
    summed = select(Run.task_id, *_SUMS).where(Run.task_id.in_(task_ids)).group_by(Run.task_id)
    found = {task_id: _totals(*sums) for task_id, *sums in db.execute(summed)} if task_ids else {}
    return {task_id: found.get(task_id, NOTHING) for task_id in task_ids}


def of_agent(db: Session, organization_id: str, agent_id: str) -> Totals:
    """The totals of all runs of an agent, on any task. A removed agent keeps its runs (S-013)."""
    return _of(db, Run.organization_id == organization_id, Run.agent_id == agent_id)


def of_organization(db: Session, organization_id: str) -> Totals:
    """The totals of all runs of an organization, including those of plain orders."""
    return _of(db, Run.organization_id == organization_id)


def _of(db: Session, *which: ColumnElement[bool]) -> Totals:
    return _totals(*db.execute(select(*_SUMS).where(*which)).one())


def _stats(*sums: Any) -> Stats:
    runs, known, cost, given, answered, took, calls, thought, cached = sums
    return Stats(
        tool_calls=min(int(calls), MAX_COUNT),
        input_tokens=min(int(given), MAX_COUNT),
        thinking_tokens=min(int(thought), MAX_COUNT),
        output_tokens=min(int(answered), MAX_COUNT),
        cached_tokens=min(int(cached), MAX_COUNT),
        # One unknown cost makes the total unknown: a partial sum is not the cost.
        cost_usd=min(float(cost), MAX_DOLLARS) if known == runs else None,
        duration_ms=min(int(took), MAX_COUNT),
    )


def _totals(*sums: Any) -> Totals:
    runs, known, cost, given, answered, took = sums
    return Totals(
        runs=runs,
        input_tokens=int(given or 0),
        output_tokens=int(answered or 0),
        cost_usd=float(cost) if known else None if runs else 0.0,
        unknown_costs=runs - known,
        duration_ms=int(took or 0),
    )
