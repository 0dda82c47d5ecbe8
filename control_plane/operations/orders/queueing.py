"""Move an order that waits to another drone, and change the order in which orders start."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.contract.declarations import orders as declared
from control_plane.contract.declarations.orders import MoveRequest, PriorityRequest
from control_plane.contract.documents.orders import OrderSummary
from control_plane.core import Caller, Core, EndedRun
from control_plane.core.lookups.drones import find_drone
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order
from control_plane.drones.condition import SILENT, Load, status_of, worker_of
from control_plane.operations.gateway import performs
from control_plane.operations.orders.reading import order_summary
from control_plane.orders.assignment import place_and_dispatch
from control_plane.orders.cancel import MOVED, until_unmoved
from control_plane.orders.ending import requeue
from control_plane.orders.lost import announce
from control_plane.orders.status_changes import explain
from shared import names
from shared.errors import Conflict
from shared.reasons import OrderFacts, Rearranged
from shared.states import ENDED, OrderStatus

_ANYWHERE = ""
_UNCHANGED = None


@performs(declared.MOVE)
def move(core: Core, caller: Caller, order_id: str, request: MoveRequest | None = None) -> OrderSummary:
    """Let an order that waits run on this drone; without one, on any that fits.

    Raises NotFound for order and drone, and Conflict for an order that has started.
    """
    order_summary(core, caller, order_id)
    drone_id = _ANYWHERE
    if request is not None and request.drone is not None:
        with core.database.read() as db:
            drone_id = find_drone(db, caller.organization_id, request.drone).id
    until_unmoved(lambda: _send_anew(core, order_id, caller.user, drone_id))
    return order_summary(core, caller, order_id)


@performs(declared.SET_PRIORITY)
def set_priority(core: Core, caller: Caller, order_id: str, request: PriorityRequest) -> OrderSummary:
    """Change the priority of an order that has not ended, and the order in its drone's queue accordingly.

    Raises NotFound, and Conflict for an order that has ended.
    """
    order_summary(core, caller, order_id)
    with core.database.write() as db:
        order = db.get_one(Order, order_id, with_for_update=True)
        if order.status in ENDED:
            raise Conflict(f"order {order_id} is {order.status}; it does not start any more", code="E-ORDER-STATE")
        order.priority = request.priority
    for each in _out_of_place(core, order_id):
        send_anew_if_waiting(core, each, caller.user)
    core.broker.wake()
    return order_summary(core, caller, order_id)


def send_anew_if_waiting(core: Core, order_id: str, by: str) -> None:
    """Take an order that waits for its drone out of the queue, and place it again; no effect on one that has begun."""
    try:
        until_unmoved(lambda: _send_anew(core, order_id, by, _UNCHANGED))
    except Conflict as conflict:
        # It has started, or ended, since the queue was read: its place no longer matters.
        if conflict.code not in {"E-ORDER-STATE", MOVED}:
            raise


def _send_anew(core: Core, order_id: str, by: str, drone_id: str | None) -> None:
    """Take the order out of its queue, and place it again; `drone_id` is the drone that it is to wait for from now on.

    The key comes before the row, as for a cancel: no claim can follow what is recorded.
    """
    with core.database.read() as db:
        order = db.get_one(Order, order_id)
        dispatch = db.get(Dispatch, order.run_id) if order.run_id else None
    _take_from_queue(core, order, dispatch)
    seen = order.status, order.run_id

    def write(db: Session) -> EndedRun | None:
        row = db.get_one(Order, order_id, with_for_update=True)
        if (row.status, row.run_id) != seen:
            raise Conflict(f"order {order_id} is now {row.status}, no longer {seen[0]}", code=MOVED)
        if drone_id is not _UNCHANGED:
            row.wanted_drone_id = drone_id or None
        ended = _back(db, core, row, dispatch, by)
        place_and_dispatch(db, core, row)
        return ended

    ended = core.database.transact(write)
    announce(core, [order_id], [ended] if ended else [])


def _take_from_queue(core: Core, order: Order, dispatch: Dispatch | None) -> None:
    """Withdraw the run's key. Raises Conflict for an order that has started, or is about to."""
    if order.status == OrderStatus.QUEUED:
        return
    if order.status == OrderStatus.ASSIGNED and dispatch is not None:
        if_missing = _waits_without_key(core, dispatch)
        address = (dispatch.drone_id, dispatch.id, dispatch.generation)
        found = core.broker.withdraw_run(*address, if_missing=if_missing)
        if found == names.dispatched(dispatch.generation) or (not found and if_missing):
            return
    raise Conflict(
        f"order {order.id} is {'starting' if order.status == OrderStatus.ASSIGNED else order.status}; only an order "
        "that waits can be moved",
        code="E-ORDER-STATE",
        next=f"fleet cancel {order.id}" if order.status not in ENDED else f"fleet retry {order.id}",
    )


def _waits_without_key(core: Core, dispatch: Dispatch) -> bool:
    """Whether the run counts as waiting if the broker does not have its key.

    If it was published, its drone may have claimed it before the broker was emptied, and tells while it can.
    """
    if dispatch.published_at is None:
        return True
    with core.database.read() as db:
        drone = db.get_one(Drone, dispatch.drone_id)
    return dispatch.claimed_at is None and status_of(drone, Load(), core.clock.now()) in SILENT


def _back(db: Session, core: Core, order: Order, dispatch: Dispatch | None, by: str) -> EndedRun | None:
    """The order in the queue of all drones; the run that ended with it, for Flower."""
    if order.status != OrderStatus.ASSIGNED or dispatch is None:
        explain(db, order, OrderFacts(returned=Rearranged(by=by), waits=order.facts.waits))
        return None
    requeue(db, core, order, Rearranged(by=by))
    return EndedRun(dispatch.id, worker_of(db.get_one(Drone, dispatch.drone_id)), "retried", "moved in the queue")


def _out_of_place(core: Core, order_id: str) -> Sequence[str]:
    """The orders to be sent again, in this order, so that those that wait for one drone start by priority.

    A queue keeps the order in which it was filled. Those that begin it as they should stay.
    """
    with core.database.read() as db:
        order = db.get_one(Order, order_id)
        if order.status != OrderStatus.ASSIGNED:
            return []
        waiting = (
            select(Order)
            .join(Dispatch, Dispatch.id == Order.run_id)
            .where(
                Order.organization_id == order.organization_id,
                Order.drone_id == order.drone_id,
                Order.status == OrderStatus.ASSIGNED,
            )
        )
        queue = list(db.scalars(waiting.order_by(Dispatch.created_at, Dispatch.id)))
    wanted = sorted(queue, key=lambda each: (-each.priority, each.number))
    stay = 0
    for each in queue:
        if each.id == wanted[stay].id:
            stay += 1
    return [each.id for each in wanted[stay:]]
