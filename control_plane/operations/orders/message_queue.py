"""The messages that wait for the agent of an order: list them, and take them back (O-042)."""

from __future__ import annotations

from sqlalchemy.orm import Session as Db

from control_plane.contract.declarations import steering as declared
from control_plane.contract.declarations.steering import WaitingMessage
from control_plane.contract.validation.checks import shown
from control_plane.core import Caller, Core
from control_plane.db.orders import Order, SteeringMessage
from control_plane.operations.gateway import performs
from control_plane.operations.orders.reading import order_summary
from control_plane.operations.row_documents import word_document
from control_plane.orders.conversations.steering_messages import take_back, undelivered_steering, unread
from shared.errors import Conflict


@performs(declared.QUEUE)
def list_(core: Core, caller: Caller, order_id: str) -> list[WaitingMessage]:
    """The messages that no model has read, in the order in which they were sent. Raises NotFound."""
    order_summary(core, caller, order_id)
    with core.database.read() as db:
        return [_document(word) for word in unread(db, db.get_one(Order, order_id))]


@performs(declared.CLEAR)
def clear(core: Core, caller: Caller, order_id: str, message: str | None = None) -> list[WaitingMessage]:
    """Take back one message, or all; returns those taken back.

    Raises NotFound for the order, Conflict for a message that was read or taken back before.
    """
    order_summary(core, caller, order_id)

    def write(db: Db) -> list[WaitingMessage]:
        order = db.get_one(Order, order_id, with_for_update=True)
        waiting = undelivered_steering(db, order)
        words = [word for word in waiting if message in {None, str(word.number)}]
        if message is not None and not words:
            raise Conflict(
                f"message {shown(message)} of order {order.id} is not waiting",
                code="E-QUEUE-GONE",
                why="the agent has read it, it was taken back before, or the order has no such message",
                next=f"fleet queue ls {order.id}",
            )
        take_back(db, core, order, words)
        return [_document(word) for word in words]

    documents = core.database.transact(write)
    core.broker.changed(order_id)
    return documents


def _document(word: SteeringMessage) -> WaitingMessage:
    when = "follow_up" if word.after else "interrupt" if word.interrupt else "steer"
    return WaitingMessage(**dict(word_document(word)), when=when)
