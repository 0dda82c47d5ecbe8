"""Total usage of the runs of orders, summed on demand."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from control_plane.db.runs import Run
from shared.events import MAX_COUNT, MAX_DOLLARS, Stats

_SUMS = (
    func.count(),
    func.count(Run.cost_usd),
    func.sum(Run.tool_calls),
    func.sum(Run.input_tokens),
    func.sum(Run.thinking_tokens),
    func.sum(Run.output_tokens),
    func.sum(Run.cached_tokens),
    func.sum(Run.cost_usd + Run.assumed_usd),
    func.sum(Run.duration_ms),
)


def of_order(db: Session, order_id: str) -> Stats:
    """Total usage of all runs of an order, including late ones. No sum exceeds what one run can report."""
    return of_orders(db, [order_id])[order_id]


def of_orders(db: Session, order_ids: Collection[str]) -> dict[str, Stats]:
    """As `of_order`, for each of these orders, in one query; every order has an entry."""
    db.flush()
    summed = select(Run.order_id, *_SUMS).where(Run.order_id.in_(order_ids)).group_by(Run.order_id)
    found = {order_id: _stats(*sums) for order_id, *sums in db.execute(summed)} if order_ids else {}
    return {order_id: found.get(order_id) or Stats() for order_id in order_ids}


def _stats(*sums: Any) -> Stats:
    runs, prices, calls, given, thought, answered, cached, cost, took = sums
    return Stats(
        tool_calls=min(int(calls), MAX_COUNT),
        input_tokens=min(int(given), MAX_COUNT),
        thinking_tokens=min(int(thought), MAX_COUNT),
        output_tokens=min(int(answered), MAX_COUNT),
        cached_tokens=min(int(cached), MAX_COUNT),
        # One unknown cost makes the total unknown: a partial sum is not the cost.
        cost_usd=min(float(cost), MAX_DOLLARS) if prices == runs else None,
        duration_ms=min(int(took), MAX_COUNT),
    )
