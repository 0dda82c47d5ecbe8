"""Cancel an order in any state."""

from __future__ import annotations

from sqlalchemy.orm import Session

from control_plane.contract.declarations import orders as declared
from control_plane.contract.declarations.orders import CancelRequest
from control_plane.contract.documents.orders import OrderSummary
from control_plane.core import Caller, Core, EndedRun
from control_plane.db.orders import Order
from control_plane.operations.gateway import performs
from control_plane.operations.orders.reading import order_summary
from control_plane.orders.cancel import MOVED, asked_by, record_cancel, until_unmoved, withdraw_key
from control_plane.orders.lost import announce
from shared.errors import Conflict
from shared.states import ENDED, OrderStatus


@performs(declared.CANCEL)
def cancel(core: Core, caller: Caller, order_id: str, request: CancelRequest | None = None) -> OrderSummary:
    """Cancel an order; no effect on an order that is `canceling` or `canceled`.

    Returns when the cancellation is recorded: an order that waits in any queue is `canceled` immediately; any other
    is `canceling` until its drone's receipt arrives or the drone counts as lost. Raises NotFound, and Conflict for an
    order that succeeded or failed.
    """
    order_summary(core, caller, order_id)
    until_unmoved(lambda: _cancel(core, caller, order_id, request.reason if request else ""))
    return order_summary(core, caller, order_id)


def cancel_unfinished(core: Core, caller: Caller, order_id: str, reason: str) -> None:
    """As `cancel`, for an order that another operation makes superfluous; no effect on one that has ended."""
    try:
        until_unmoved(lambda: _cancel(core, caller, order_id, reason))
    except Conflict as conflict:
        if conflict.code != "E-ORDER-STATE":
            raise


def _cancel(core: Core, caller: Caller, order_id: str, reason: str) -> None:
    seen = withdraw_key(core, order_id)
    if seen.status in {OrderStatus.CANCELING, OrderStatus.CANCELED}:
        return
    if seen.status in ENDED:
        raise Conflict(f"order {order_id} is {seen.status}; it cannot be canceled", code="E-ORDER-STATE")

    def write(db: Session) -> EndedRun | None:
        order = db.get_one(Order, order_id, with_for_update=True)
        if (order.status, order.run_id) != (seen.status, seen.run_id):
            raise Conflict(f"order {order_id} is now {order.status}, no longer {seen.status}", code=MOVED)
        return record_cancel(db, core, order, seen.taken_back, asked_by(caller, reason))

    # The end of an order may let others begin, so this may wait for one that ends at the same time.
    ended = core.database.transact(write)
    announce(core, [order_id], [ended] if ended else [])
