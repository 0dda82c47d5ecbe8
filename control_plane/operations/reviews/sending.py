"""Send a review: all pending comments of one user on one order, as one message to its agent."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.contract.declarations import reviews as declared
from control_plane.contract.declarations.reviews import SendReviewRequest
from control_plane.contract.declarations.steering import SayRequest
from control_plane.contract.documents.orders import OrderSummary
from control_plane.contract.validation.checks import check_text
from control_plane.core import Caller, Core
from control_plane.core.lookups.users import author_id
from control_plane.db.audit_chain import concerns
from control_plane.db.orders import Order
from control_plane.db.reviews import ReviewComment
from control_plane.operations.gateway import performs
from control_plane.operations.orders.next_turn import fits, next_turn
from control_plane.operations.orders.reading import order_summary
from control_plane.operations.orders.steering import MAX_SAID, MessageDraft, pass_on, write_message
from control_plane.operations.reviews.commenting import MAX_TEXT
from control_plane.operations.reviews.message import review_message
from control_plane.orders.draft import create_order
from control_plane.orders.numbers import lock_numbers
from shared.errors import Conflict
from shared.states import ENDED


@performs(declared.SEND)
def send(core: Core, caller: Caller, order_id: str, request: SendReviewRequest) -> OrderSummary:
    """Send the caller's pending comments; returns the order whose agent receives them.

    It is durable when this returns: a message to the order while it has not ended, else a new order of its session.
    Raises NotFound, Conflict without pending comments and for an order that is being canceled, TooLarge, Precondition
    if the project or the provider was removed.
    """
    check_text("the text", request.text, limit=MAX_TEXT, empty=True)
    project = order_summary(core, caller, order_id).project

    def write(db: Session) -> str:
        # Before the order is locked, as for every new order.
        lock_numbers(db)
        order = db.get_one(Order, order_id, with_for_update=True, populate_existing=True)
        comments = _pending(db, caller, order)
        text = review_message(order.id, comments, request.text, _parents(db, comments))
        receiver, number, message = order.id, None, None
        if order.status in ENDED:
            receiver = create_order(db, core, next_turn(db, caller, order, text)).id
            concerns(receiver)
        else:
            said = MessageDraft(order.id, project, SayRequest(text=fits(text, MAX_SAID)))
            message = write_message(db, core, caller, said)[1]
            number = message.number
        for each in comments:
            each.sent_at, each.sent_order_id, each.message_number = core.clock.now(), receiver, number
        db.flush()
        if message is not None:
            pass_on(db, core, order, message)
        return receiver

    receiver = core.database.transact(write)
    core.broker.changed(receiver)
    if receiver != order_id:
        core.broker.changed(order_id)
    return order_summary(core, caller, receiver)


def _pending(db: Session, caller: Caller, order: Order) -> Sequence[ReviewComment]:
    own = ReviewComment.order_id == order.id, ReviewComment.author == author_id(caller), ReviewComment.sent_at.is_(None)
    rows = db.scalars(select(ReviewComment).where(*own).order_by(ReviewComment.number).with_for_update()).all()
    if not rows:
        raise Conflict(
            f"you have no pending comments on order {order.id}",
            code="E-REVIEW-EMPTY",
            next=f"fleet review add {order.id} 'TEXT' --file FILE --line N",
        )
    return rows


def _parents(db: Session, comments: Sequence[ReviewComment]) -> dict[str, ReviewComment]:
    ids = {each.parent_id for each in comments if each.parent_id is not None}
    return {each.id: each for each in db.scalars(select(ReviewComment).where(ReviewComment.id.in_(ids)))} if ids else {}
