"""Total usage of the runs of orders, summed on demand."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from control_plane.db.runs import Run
from shared.events import Stats

_SUMS = (
    func.count(),
    func.count(Run.cost_usd),
    func.sum(Run.tool_calls),
    func.sum(Run.input_tokens),
    func.sum(Run.thinking_tokens),
    func.sum(Run.output_tokens),
    func.sum(Run.cost_usd),
    func.sum(Run.duration_ms),
)


def of_order(db: Session, order_id: str) -> Stats:
    """Total usage of all runs of an order, including late ones."""
    return of_orders(db, [order_id])[order_id]


def of_orders(db: Session, order_ids: Collection[str]) -> dict[str, Stats]:
    """As `of_order`, for each of these orders, in one query; every order has an entry."""
    db.flush()
    summed = select(Run.order_id, *_SUMS).where(Run.order_id.in_(order_ids)).group_by(Run.order_id)
    found = {order_id: _stats(*sums) for order_id, *sums in db.execute(summed)} if order_ids else {}
    return {order_id: found.get(order_id) or Stats() for order_id in order_ids}


def _stats(*sums: Any) -> Stats:
    runs, prices, calls, given, thought, answered, cost, took = sums
    return Stats(
        tool_calls=int(calls),
        input_tokens=int(given),
        thinking_tokens=int(thought),
        output_tokens=int(answered),
        # One unknown cost makes the total unknown: a partial sum is not the cost.
        cost_usd=float(cost) if prices == runs else None,
        duration_ms=int(took),
    )
