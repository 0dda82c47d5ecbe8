"""Assignment of an order to a drone, inside the caller's transaction.

The row is the source of truth: every effect outside the database (a queue, a key, notifying followers) happens after
the commit and can be repeated from the row.
"""

from __future__ import annotations

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.core.audit_entries import note_order
from control_plane.core.lookups.providers import model_now
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order, Turn
from control_plane.drones.condition import Load, load_by_drone, why_not_starting
from control_plane.drones.inbox import notify_drone
from control_plane.orders.conversations.entries import locked
from control_plane.orders.conversations.resumption import resumption_on
from control_plane.orders.conversations.steering_messages import send_along
from control_plane.orders.placement import Placement, earlier_in_session, place
from control_plane.orders.status_changes import explain, move_order
from shared.control import Cancel
from shared.errors import Conflict
from shared.names import new_id
from shared.reasons import DroneChoice, InQueue, OrderFacts, Resumption, TakenBack
from shared.states import IN_HAND, OrderStatus
from shared.work_order import GIVES_WAY


def dispatch(db: Session, core: Core, order: Order, placement: Placement) -> Dispatch:
    """Assign a queued order to a drone: generation + 1, and an outbox row, which the relay publishes.

    Raises Conflict if the order is no longer queued, or an earlier one of its session was queued again meanwhile.
    """
    # Under the session's lock, which requeuing an order takes too: only one order of a session runs at a time.
    locked(db, order.session_id)
    if earlier := earlier_in_session(db, order):
        what = f"order {order.id} is waiting for order {earlier.order} of the same session"
        raise Conflict(what, code="E-ORDER-STATE")
    drone = placement.drone
    made = Dispatch(
        id=new_id(),
        organization_id=order.organization_id,
        order_id=order.id,
        drone_id=drone.id,
        generation=order.generation + 1,
        created_at=core.clock.now(),
        choice=DroneChoice(placed=placement.because, scores=placement.scores, scored=placement.scored),
    )
    db.add(made)
    _take_model(db, order)
    where = {"drone_id": drone.id, "run_id": made.id, "generation": made.generation}
    move_order(db, order, OrderStatus.ASSIGNED, _placed(db, core, order, placement), **where)
    send_along(db, order)
    _make_room(db, core, order, drone)
    note_order(db, core, order, "order_assigned")
    return made


def _take_model(db: Session, order: Order) -> None:
    """Set the model of order and turn to that of the run which begins: the provider may have been edited."""
    model = model_now(db, order)
    if model != order.model:
        order.model = model
        db.execute(update(Turn).where(Turn.order_id == order.id).values(model=model))


def _make_room(db: Session, core: Core, order: Order, drone: Drone) -> None:
    """If the order finds no free slot, let the drone give back what it is doing that can wait."""
    if order.purpose in GIVES_WAY or load_by_drone(db, [drone.id])[drone.id].outstanding <= drone.concurrency:
        return
    on_it = Order.drone_id == drone.id, Order.ended_at.is_(None), Order.purpose.in_(GIVES_WAY)
    for check in db.scalars(select(Order).where(*on_it, Order.status.in_(IN_HAND))):
        # Not canceled: a run that ends this way while its order goes on is queued again.
        why = f"order {order.id} needs its slot"
        message = Cancel(run_id=check.run_id or "", generation=check.generation, reason=why)
        notify_drone(db, core, drone.id, message, check.run_id)


def _placed(db: Session, core: Core, order: Order, placement: Placement) -> OrderFacts:
    before = order.facts.returned
    returned = before if isinstance(before, TakenBack) else None
    resumes = resumption_on(db, order, placement.drone)
    if returned and returned.resumes and resumes and _same_place(returned.resumes, resumes):
        # Already recorded when the order was requeued.
        resumes = None
    placed = placement.because.model_copy(update={"resumes": resumes})
    drone = placement.drone
    waits = waits_in_queue(core, drone, load_by_drone(db, [drone.id])[drone.id])
    return OrderFacts(returned=returned, placed=placed, waits=waits)


def _same_place(one: Resumption, other: Resumption) -> bool:
    return (one.step, one.why_not) == (other.step, other.why_not)


def place_and_dispatch(db: Session, core: Core, order: Order, *, may_go: bool = True) -> Dispatch | None:
    """Dispatch a queued order if a drone takes it and `may_go` is set; if no drone does, record why on the order."""
    found = place(db, core, order)
    if isinstance(found, Placement):
        return dispatch(db, core, order, found) if may_go else None
    if found != order.facts.waits:
        explain(db, order, OrderFacts(returned=order.facts.returned, waits=found))
    return None


def waits_in_queue(core: Core, drone: Drone, load: Load) -> InQueue | None:
    """Why the drone does not start the orders in its queue now; None if it does."""
    state = why_not_starting(drone, load, core.clock.now())
    return InQueue(state=state) if state is not None else None
