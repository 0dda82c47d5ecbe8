"""Figures of orders: how many are in each state, and why and how long the others wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from prometheus_client.core import Metric
from sqlalchemy import JSON, and_, func, select, type_coerce
from sqlalchemy.orm import Session

from control_plane.db.orders import Order
from control_plane.metrics.families import counter, gauge
from shared.states import OrderStatus

WAITING = (OrderStatus.QUEUED, OrderStatus.ASSIGNED, OrderStatus.AWAITING_APPROVAL)
NO_REASON = "none"
"""In place of the code of a reason: none is recorded yet."""
_CODE = type_coerce(Order.waits_because, JSON)["code"].as_string()


def order_metrics(db: Session, names: Mapping[str, str], now: datetime) -> Iterator[Metric]:
    """`names`: of the organizations, by id."""
    yield gauge("dronefleet_orders", "Orders.", ("organization", "status"), _by_status(db, names))
    waiting = _waiting(db, names)
    labels = ("organization", "code")
    counts = ((key, number) for key, (number, _) in waiting.items())
    yield gauge("dronefleet_orders_waiting", "Orders that wait.", labels, counts)
    ages = ((key, (now - oldest).total_seconds()) for key, (_, oldest) in waiting.items())
    help_ = "Seconds since the oldest order that waits was submitted."
    yield gauge("dronefleet_order_waiting_seconds", help_, labels, ages)


def step_metrics(db: Session, names: Mapping[str, str]) -> Iterator[Metric]:
    """Every step is counted in its order's row, which takes one pass over the orders, and none over the steps.

    Steps of people's orders alone: as in `runs`, what is removed after a time must not count.
    """
    steps = select(Order.organization_id, func.sum(Order.step_count)).where(Order.purpose == "work")
    steps = steps.group_by(Order.organization_id)
    found = {id_: int(number) for id_, number in db.execute(steps)}
    stored = [((name,), found.get(id_, 0)) for id_, name in names.items()]
    yield counter("dronefleet_steps", "Steps of people's orders.", ("organization",), stored)


def _by_status(db: Session, names: Mapping[str, str]) -> Iterator[tuple[tuple[str, str], int]]:
    # Answered from ix_orders_state alone.
    counted = select(Order.organization_id, Order.status, func.count()).group_by(Order.organization_id, Order.status)
    found = {(organization, status): number for organization, status, number in db.execute(counted)}
    for id_, name in names.items():
        for status in OrderStatus:
            yield (name, status.value), found.get((id_, status), 0)


def _waiting(db: Session, names: Mapping[str, str]) -> dict[tuple[str, str], tuple[int, datetime]]:
    """The number of waiting orders and the oldest submission, by organization and code."""
    code = func.coalesce(_CODE, NO_REASON).label("code")
    # `ended_at` restricts it to ix_orders_unended, however many orders have ended.
    which = and_(Order.ended_at.is_(None), Order.status.in_(WAITING))
    wanted = select(Order.organization_id, code, func.count(), func.min(Order.created_at)).where(which)
    rows = db.execute(wanted.group_by(Order.organization_id, code))
    return {(names[organization], code): (number, oldest) for organization, code, number, oldest in rows}
