"""Cancel an order in any state: immediately if no drone has it, else through its drone, whose receipt ends it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy.orm import Session

from control_plane.core import Caller, Core, EndedRun
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order
from control_plane.drones.condition import worker_of
from control_plane.drones.inbox import notify_drone
from control_plane.orders.lost import withdraw
from control_plane.orders.status_changes import move_order
from shared import names
from shared.control import Cancel
from shared.errors import Conflict, FleetFault
from shared.reason_text import asked_text
from shared.reasons import CancelAsked, OrderFacts
from shared.states import ENDED, OrderStatus
from shared.terminal import logs

T = TypeVar("T")
log = logs.get(__name__)


_TRIES = 3


@dataclass(frozen=True)
class Observed:
    """The order as it was when its run's key was read."""

    status: str
    run_id: str | None
    taken_back: bool
    """No drone holds the run, and none can claim it any more."""


MOVED = "E-ORDER-MOVED"
"""The order changed after it was observed: the operation is retried."""


def until_unmoved(attempt: Callable[[], T]) -> T:
    """The result of `attempt`, retried a limited number of times if the order moved between read and write."""
    for _ in range(_TRIES - 1):
        try:
            return attempt()
        except Conflict as conflict:
            if conflict.code != MOVED:
                raise
    return attempt()


def withdraw_key(core: Core, order_id: str) -> Observed:
    """Read the order; if a drone has it, or may get it, withdraw its run's key first.

    The key comes before the row, so that no claim can follow the record. If this process dies in between, the
    supervisor finds a withdrawn run and queues its order again.
    """
    with core.database.read() as db:
        order = db.get_one(Order, order_id)
        dispatch = db.get(Dispatch, order.run_id) if order.run_id else None
    has_run = dispatch is not None and dispatch.closed_at is None
    if order.status == OrderStatus.QUEUED or order.status in ENDED or dispatch is None or not has_run:
        return Observed(order.status, order.run_id, taken_back=True)
    if order.status == OrderStatus.CANCELING:
        return Observed(order.status, order.run_id, taken_back=False)
    return Observed(order.status, order.run_id, taken_back=_withdrawn(core, order, dispatch))


def _withdrawn(core: Core, order: Order, dispatch: Dispatch) -> bool:
    address = (dispatch.drone_id, dispatch.id, dispatch.generation)
    try:
        if order.status != OrderStatus.ASSIGNED:
            core.broker.revoke_run(*address)
            return False
        found = core.broker.withdraw_run(*address)
    except FleetFault as error:
        # The cancel is recorded anyway; the supervisor reads the key when the broker is back.
        log.warning("order canceled while the broker is unavailable", order=order.id, run=dispatch.id, why=error.what)
        return False
    # If the key of a published order is absent, it may have been claimed before Redis was emptied: ask the drone.
    return found == names.dispatched(dispatch.generation) or (not found and dispatch.published_at is None)


def record_cancel(db: Session, core: Core, order: Order, taken_back: bool, asked: CancelAsked) -> EndedRun | None:
    """Record the cancel, in a transaction that has locked the order and found it unchanged since it was observed.

    Returns the run that ended with it, if the order was in a drone's queue.
    """
    dispatch = db.get(Dispatch, order.run_id) if order.run_id else None
    if taken_back or dispatch is None:
        has_run = dispatch is not None and dispatch.closed_at is None
        withdraw(db, core, order, asked)
        if dispatch is None or not has_run:
            return None
        return EndedRun(dispatch.id, worker_of(db.get_one(Drone, dispatch.drone_id)), "revoked", "canceled")
    move_order(db, order, OrderStatus.CANCELING, OrderFacts(cancel=asked))
    message = Cancel(run_id=dispatch.id, generation=dispatch.generation, reason=asked_text(asked))
    notify_drone(db, core, dispatch.drone_id, message, dispatch.id)
    return None


def asked_by(caller: Caller, reason: str) -> CancelAsked:
    return CancelAsked(by=caller.user, text=reason)
