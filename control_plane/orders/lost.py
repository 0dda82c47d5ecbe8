"""Ends a run that will not report its own end: its drone fell silent, came back without it, or was removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Literal

from sqlalchemy.orm import Session

from control_plane.core import Core, EndedRun
from control_plane.core.rows import each_alone
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order
from control_plane.drones.condition import worker_of
from control_plane.orders.ending import Ending, canceled, finish, try_again
from control_plane.orders.run_ends import RunEnding, close_run
from control_plane.orders.status_changes import explain, move_order
from control_plane.orders.waits import close_all
from shared.events import Receipt
from shared.outcome import ExitStatus
from shared.reason_text import loss_text
from shared.reasons import CancelAsked, CanceledEnd, OrderFacts, RunEnd, RunLoss
from shared.states import ENDED, OrderStatus, RunStatus


@dataclass(frozen=True)
class Loss:
    """A run that is given up, and why."""

    run_id: str
    drone_id: str
    generation: int
    why: RunLoss
    unreachable_since: datetime | None = None
    """Set if the drone is unreachable; None if it is reachable but does not have the run."""


def lose_runs(core: Core, losses: Iterable[Loss]) -> list[str]:
    """Revoke the runs, then record them as lost and requeue their orders; returns the orders that changed.

    The key is revoked first: from then on no copy of the run can be claimed. A run with an open push grant is left for
    now: a grant is never withdrawn.
    """

    def lose_one(loss: Loss) -> tuple[str, EndedRun | None]:
        with core.database.read() as db:
            dispatch = db.get_one(Dispatch, loss.run_id)
            if _may_push(core, db.get_one(Order, dispatch.order_id), dispatch):
                return dispatch.order_id, None
        core.broker.revoke_run(loss.drone_id, loss.run_id, loss.generation)
        return core.database.transact(partial(_lose, core, loss))

    found = each_alone("lost", losses, lose_one)
    changed = [order_id for order_id, ended_run in found if ended_run is not None]
    ended = [ended_run for _, ended_run in found if ended_run is not None]
    announce(core, changed, ended)
    return changed


def _lose(core: Core, loss: Loss, db: Session) -> tuple[str, EndedRun | None]:
    return db.get_one(Dispatch, loss.run_id).order_id, lose(db, core, loss)


def announce(core: Core, order_ids: Iterable[str], ended: Sequence[EndedRun]) -> None:
    """Notify followers, the supervisor and subscribers to ended runs. Call after the commit."""
    for order_id in order_ids:
        core.broker.changed(order_id)
    if ended:
        for subscriber in core.subscribers.runs_ended:
            subscriber(core, ended)


def lose(db: Session, core: Core, loss: Loss, *, respect_grant: bool = True) -> EndedRun | None:
    """Record one loss in the caller's transaction; None if the run has already ended or a grant is open."""
    dispatch = db.get_one(Dispatch, loss.run_id, with_for_update=True, populate_existing=True)
    order = db.get_one(Order, dispatch.order_id, with_for_update=True, populate_existing=True)
    if dispatch.closed_at is not None or (respect_grant and _may_push(core, order, dispatch)):
        return None
    close_run(db, core, dispatch, RunEnding(RunStatus.LOST, ExitStatus.LOST, loss_text(loss.why)))
    if order.run_id == dispatch.id:
        _send_back(db, core, order, loss)
    drone = db.get_one(Drone, dispatch.drone_id)
    return EndedRun(dispatch.id, worker_of(drone), _how(order, dispatch), loss_text(loss.why))


def _may_push(core: Core, order: Order, dispatch: Dispatch) -> bool:
    """Whether the run has an open push grant."""
    return order.run_id == dispatch.id and order.grant_until is not None and order.grant_until > core.clock.now()


def _how(order: Order, dispatch: Dispatch) -> Literal["failed", "retried", "revoked"]:
    """What Flower shows of the run: an order that continues has not failed."""
    if order.run_id != dispatch.id or order.status not in ENDED:
        return "retried"
    return "revoked" if order.status == OrderStatus.CANCELED else "failed"


def withdraw(db: Session, core: Core, order: Order, asked: CancelAsked | None) -> None:
    """Cancel an order that no drone holds (any more): nothing runs, and what a suspended run did is kept.

    `asked` is None if the order already records who asked.
    """
    suspended = order.status == OrderStatus.AWAITING_APPROVAL
    if suspended:
        close_all(db, core, str(order.run_id))
    if asked is not None:
        because = OrderFacts(cancel=asked)
        if suspended or order.status == OrderStatus.ASSIGNED:
            move_order(db, order, OrderStatus.CANCELING, because)
        else:
            explain(db, order, because)
    ended = CanceledEnd(code="with_receipt" if suspended else "before_start")
    ending = canceled(ended, Receipt(at=core.clock.now()))
    finish(db, core, order, OrderStatus.CANCELED, ending)


def _send_back(db: Session, core: Core, order: Order, loss: Loss) -> None:
    if order.status != OrderStatus.CANCELING:
        try_again(db, core, order, Ending(ExitStatus.LOST, RunEnd(loss=loss.why)))
        return
    receipt = Receipt(at=core.clock.now(), unreachable_since=loss.unreachable_since)
    finish(db, core, order, OrderStatus.CANCELED, canceled(CanceledEnd(code="with_loss", loss=loss.why), receipt))
