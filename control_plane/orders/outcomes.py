"""What came of an order, from its row."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Text, and_, cast, func, or_

from control_plane.db.orders import Order
from shared.outcome import EndedWork, OrderOutcome, order_outcome
from shared.states import OrderStatus

WORK: tuple[ColumnElement[bool], ...] = (
    or_(Order.purpose != "work", Order.head_commit.is_not(None), Order.patch_bytes > 0),
    Order.follow_up.is_not_distinct_from("question"),
    or_(
        cast(Order.left_out, Text) != "[]",
        and_(func.coalesce(Order.push_error, "") != "", Order.pushed.is_(False)),
    ),
)
"""The fields of `EndedWork` as `outcome_of` reads them, for an order that is in no race."""


def outcome_of(order: Order, *, in_race: bool) -> OrderOutcome | None:
    """What came of the order; None until it has ended. `in_race`: only the winner is pushed, and that is no fault."""
    work = EndedWork(
        is_changed=order.purpose != "work" or order.head_commit is not None or bool(order.patch_bytes),
        asks=order.follow_up == "question",
        is_left_behind=bool(order.left_out) or (bool(order.push_error) and not order.pushed and not in_race),
    )
    return order_outcome(OrderStatus(order.status), order.exit_status, work)
