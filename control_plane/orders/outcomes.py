"""What came of an order, from its row."""

from __future__ import annotations

from control_plane.db.orders import Order
from shared.outcome import EndedWork, OrderOutcome, order_outcome
from shared.states import OrderStatus


def outcome_of(order: Order, *, in_race: bool) -> OrderOutcome | None:
    """What came of the order; None until it has ended. `in_race`: only the winner is pushed, and that is no fault."""
    work = EndedWork(
        is_changed=order.purpose != "work" or order.head_commit is not None or bool(order.patch_bytes),
        asks=order.follow_up == "question",
        is_left_behind=bool(order.left_out) or (bool(order.push_error) and not order.pushed and not in_race),
    )
    return order_outcome(OrderStatus(order.status), order.exit_status, work)
