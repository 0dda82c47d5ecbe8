"""Cancel batches, and run their rows again."""

from __future__ import annotations

from sqlalchemy import and_, or_, select, update
from sqlalchemy.orm import Session as Db

from control_plane.contract.declarations import batches as declared
from control_plane.contract.declarations.batches import BatchDocument, RetryBatchRequest
from control_plane.contract.declarations.orders import CancelRequest
from control_plane.core import Caller, Core
from control_plane.core.lookups.groups import find_batch
from control_plane.db.batches import BatchRow
from control_plane.db.orders import Order
from control_plane.operations.batches.reading import show
from control_plane.operations.gateway import performs
from control_plane.operations.orders.canceling import cancel_unfinished
from shared.errors import Conflict
from shared.states import OrderStatus


@performs(declared.CANCEL)
def cancel(core: Core, caller: Caller, batch_id: str, request: CancelRequest | None = None) -> BatchDocument:
    """Submit no further order of the batch, and cancel those that have not ended; repeatable. Raises as `show`.

    A finished batch stays as it is.
    """

    def write(db: Db) -> tuple[str, str, list[str]]:
        # The supervisor holds the same lock while it submits, so no order begins after this.
        batch = find_batch(db, caller, batch_id, lock=True)
        own = (BatchRow.batch_id == batch.id, BatchRow.state == "waiting")
        unended = select(Order.id).where(Order.group_id == batch.id, Order.ended_at.is_(None))
        order_ids = list(db.scalars(unended.order_by(Order.number.desc())))
        if order_ids or batch.begun_at is None or db.scalar(select(BatchRow.number).where(*own).limit(1)) is not None:
            batch.canceled_at = batch.canceled_at or core.clock.now()
        # A row that waits for a retry keeps the result it has.
        db.execute(update(BatchRow).where(*own, BatchRow.order_id.is_not(None)).values(state="submitted"))
        db.execute(update(BatchRow).where(*own, BatchRow.order_id.is_(None)).values(state="canceled"))
        return batch.id, batch.name, order_ids

    found, name, order_ids = core.database.transact(write)
    reason = request.reason if request is not None and request.reason else f"with batch {name}"
    for order_id in order_ids:
        cancel_unfinished(core, caller, order_id, reason)
    return show(core, caller, found)


@performs(declared.RETRY)
def retry(core: Core, caller: Caller, batch_id: str, request: RetryBatchRequest | None = None) -> BatchDocument:
    """Let rows wait again: their orders run again from the beginning, a few at a time.

    Raises as `show`, and Conflict for a batch that has not begun, or in which no row is in such a state.
    """
    which = request.which if request is not None else "failed"

    def write(db: Db) -> str:
        batch = find_batch(db, caller, batch_id, lock=True)
        if batch.begun_at is None and batch.canceled_at is None:
            raise Conflict(
                f"batch {batch.name} has not begun: not all of its rows are there",
                code="E-BATCH-STATE",
                next="fleet batch run FILE    sends the rows again",
            )
        ended = {"failed": (OrderStatus.FAILED,), "canceled": (OrderStatus.CANCELED,)}
        states = {"failed": ("refused",), "canceled": ("canceled",)}
        names = ("failed", "canceled") if which == "all" else (which,)
        orders = select(Order.id).where(
            Order.group_id == batch.id, Order.status.in_([each.value for name in names for each in ended[name]])
        )
        chosen = or_(
            BatchRow.state.in_([each for name in names for each in states[name]]),
            and_(BatchRow.state == "submitted", BatchRow.order_id.in_(orders)),
        )
        changed = db.execute(
            update(BatchRow)
            .where(BatchRow.batch_id == batch.id, chosen)
            .values(state="waiting", problem=None)
            .execution_options(synchronize_session=False)
            .returning(BatchRow.number)
        ).all()
        if not changed:
            raise Conflict(
                f"no row of batch {batch.name} has {' or was '.join(names)}",
                code="E-BATCH-STATE",
                next=f"fleet batch show {batch.id}",
            )
        batch.canceled_at, batch.begun_at = None, core.clock.now()
        return batch.id

    found = core.database.transact(write)
    core.broker.wake()
    return show(core, caller, found)
