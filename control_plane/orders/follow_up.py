"""What an ended order needs from its user: an answer, a look at its failed checks, or more money."""

from __future__ import annotations

from typing import Literal

from control_plane.db.orders import Order
from shared.closing_question import closes_with_question
from shared.outcome import ExitStatus
from shared.states import OrderStatus

FollowUp = Literal["question", "verification", "budget"]


def follow_up_of(order: Order, to: OrderStatus, exit_status: str, response: str | None) -> FollowUp | None:
    """What an order needs that ends like this; None: nothing.

    A task has its own way back to the user, and the services of the control plane have none.
    """
    if order.purpose != "work" or order.task_id is not None:
        return None
    if to is OrderStatus.SUCCEEDED:
        # Work that was delivered is a result, even if its summary ends with a question.
        asks = order.head_commit is None and not order.patch_bytes and closes_with_question(response or "")
        return "question" if asks else None
    if to is OrderStatus.FAILED and exit_status == ExitStatus.VERIFICATION_FAILED:
        return "verification"
    return "budget" if to is OrderStatus.FAILED and exit_status == ExitStatus.COST_LIMIT else None
