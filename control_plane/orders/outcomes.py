"""What came of an order, from its row."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Text, and_, case, cast, false, func, or_, select

from control_plane.db.groups import OrderGroup
from control_plane.db.orders import Order
from shared.outcome import GAVE_UP, EndedWork, ExitStatus, OrderOutcome, Verification, order_outcome
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


CHECKS_FAILED = "checks_failed"
"""What lists show in place of the outcome of work that was delivered although its checks failed."""


def shows(word: str) -> ColumnElement[bool]:
    """Whether lists show this of an ended order: an `OrderOutcome`, or that its checks failed."""
    changed, asks, left_behind = WORK
    in_race = (OrderGroup.id == Order.group_id, OrderGroup.kind == "race")
    lost = or_(OrderGroup.winner_id.is_(None), OrderGroup.winner_id != Order.id)
    kept = select(OrderGroup.id).where(*in_race, lost).correlate(Order).exists()
    unpushed = and_(left_behind, or_(cast(Order.left_out, Text) != "[]", ~kept))
    succeeded = Order.status == OrderStatus.SUCCEEDED
    shown = case(
        (Order.status == OrderStatus.CANCELED, OrderOutcome.CANCELED.value),
        (and_(succeeded, Order.verification == Verification.FAILED), CHECKS_FAILED),
        (or_(Order.exit_status.in_(GAVE_UP), and_(succeeded, unpushed)), OrderOutcome.INCOMPLETE.value),
        (Order.status == OrderStatus.FAILED, OrderOutcome.FAILED.value),
        (asks, OrderOutcome.ASKS.value),
        (changed, OrderOutcome.DONE.value),
        else_=OrderOutcome.UNCHANGED.value,
    )
    also = Order.exit_status == ExitStatus.VERIFICATION_FAILED if word == CHECKS_FAILED else false()
    return and_(Order.ended_at.is_not(None), or_(shown == word, also))


def outcome_of(order: Order, *, may_push: bool) -> OrderOutcome | None:
    """What came of the order; None until it has ended.

    `may_push`: it is in no race, or has won it. Only the winner is pushed, which is no fault of the others.
    """
    work = EndedWork(
        is_changed=order.purpose != "work" or order.head_commit is not None or bool(order.patch_bytes),
        asks=order.follow_up == "question",
        is_left_behind=bool(order.left_out) or (may_push and bool(order.push_error) and not order.pushed),
    )
    return order_outcome(OrderStatus(order.status), order.exit_status, work)
