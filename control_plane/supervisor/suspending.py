"""Runs that wait for a person do not hold a slot for long while other orders wait for one.

Such a run is asked to end at its last checkpoint. Its order keeps waiting, without a drone, and is queued again once it
is answered: the next run, on any drone, executes the calls that have no result yet.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from itertools import chain

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.core.rows import each_alone
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.waits import Wait
from control_plane.drones.condition import load_by_drone
from control_plane.drones.inbox import notify_drone
from control_plane.orders.conversations.steering_messages import undelivered_steering
from control_plane.orders.ending import requeue
from control_plane.orders.plan_waits import APPROVE, PLAN, SEND_BACK
from control_plane.orders.waits import DENY, QUESTION, close_all, open_waits
from shared.control import Suspend
from shared.reasons import Answered, Continued, NoDroneTakesWork
from shared.states import OrderStatus

_SUSPENDABLE = ("approval", "question", "plan", "limit", "budget", "branch")
"""Not `secret`: no checkpoint has the files that the question is about."""
_ENDS_WITHIN = timedelta(minutes=1)
"""How long a run that was asked to end counts as a slot that is about to be free."""
_WAITING = Order.ended_at.is_(None), Order.status == OrderStatus.AWAITING_APPROVAL


def suspend_long_waits(core: Core, after: float) -> list[str]:
    """Ask runs that have waited for a person for `after` seconds to end, as many as other orders need their slots.

    Who has waited longest comes first. Returns the ids of the runs.
    """
    with core.database.read() as db:
        found = _slots_to_free(db, core.clock.now() - timedelta(seconds=after), core.clock.now())
    asked = each_alone("suspending", found, lambda each: each[0].run_id if _ask(core, each[0].number, each[1]) else "")
    return list(filter(None, asked))


def _slots_to_free(db: Session, before: datetime, now: datetime) -> list[tuple[Wait, str]]:
    """The waits whose runs should end, each with its drone."""
    waiting = select(Wait, Drone).join(Order, Order.run_id == Wait.run_id).join(Drone, Drone.id == Order.drone_id)
    long = Wait.asked_at <= before, Wait.answered_at.is_(None), Wait.closed_at.is_(None)
    rows = db.execute(waiting.where(*_WAITING, *long, Wait.kind.in_(_SUSPENDABLE)).order_by(Wait.asked_at)).all()
    if not rows:
        return []
    held = [(row[0], row[1]) for row in rows]
    needed = _needed(db, {drone.id: drone for _, drone in held})
    needed.subtract(drone.id for wait, drone in held if _is_ending(wait, now))
    found: list[tuple[Wait, str]] = []
    for wait, drone in held:
        if wait.suspend_asked_at is None and needed[drone.id] > 0:
            needed[drone.id] -= 1
            found.append((wait, drone.id))
    return found


def _is_ending(wait: Wait, now: datetime) -> bool:
    return wait.suspend_asked_at is not None and wait.suspend_asked_at > now - _ENDS_WITHIN


def _needed(db: Session, drones: dict[str, Drone]) -> Counter[str]:
    """How many orders wait for a slot of each of these drones: in its queue, or since no drone takes them."""
    load = load_by_drone(db, drones)
    needed = Counter({drone.id: load[drone.id].outstanding - drone.concurrency for drone in drones.values()})
    by_name = {drone.name: drone.id for drone in drones.values()}

    def would_do(order: Order) -> list[str]:
        waits = order.facts.waits
        states = waits.states if isinstance(waits, NoDroneTakesWork) else ()
        busy = [by_name[state.drone] for state in states if state.code == "busy" and state.drone in by_name]
        # The first is enough: a slot of any of them would do.
        return busy[:1]

    queued = db.scalars(select(Order).where(Order.ended_at.is_(None), Order.status == OrderStatus.QUEUED))
    needed.update(chain.from_iterable(each_alone("suspending", queued, would_do)))
    return needed


def _ask(core: Core, number: int, drone_id: str) -> bool:
    """Ask the run of the wait to end; False if it was answered meanwhile."""
    with core.database.write() as db:
        wait = db.get_one(Wait, number, with_for_update=True)
        if wait.answered_at is not None or wait.closed_at is not None or wait.suspend_asked_at is not None:
            return False
        wait.suspend_asked_at = core.clock.now()
        notify_drone(db, core, drone_id, Suspend(run_id=wait.run_id, call_id=wait.subject), wait.run_id)
    core.broker.wake()
    return True


def continue_answered(core: Core) -> list[str]:
    """Queue suspended orders whose waits are answered, by a person or by the clock; returns their ids.

    A message that interrupts ends the waits as well: the next run is told that no one approved, and gets the message.
    """
    suspended = select(Order.id).where(*_WAITING, Order.drone_id.is_(None))
    with core.database.read() as db:
        order_ids = db.scalars(suspended).all()
    alone = each_alone("continuing", order_ids, lambda order_id: order_id if _continue(core, order_id) else "")
    continued = list(filter(None, alone))
    for order_id in continued:
        core.broker.changed(order_id)
    return continued


def _continue(core: Core, order_id: str) -> bool:
    with core.database.write() as db:
        order = db.get_one(Order, order_id, with_for_update=True)
        if order.status != OrderStatus.AWAITING_APPROVAL or order.run_id is None or order.drone_id is not None:
            return False
        waits = open_waits(db, [order.run_id])[order.run_id]
        interrupted = any(message.interrupt for message in undelivered_steering(db, order))
        for wait in waits:
            _answer_without_person(wait, core.clock.now(), interrupted=interrupted)
        if any(wait.answered_at is None for wait in waits):
            return False
        last = max(waits, key=lambda wait: wait.asked_at)
        requeue(db, core, order, Continued(answered=_answered(last)))
        close_all(db, core, last.run_id)
    return True


def _answer_without_person(wait: Wait, now: datetime, *, interrupted: bool) -> None:
    """Decide an unanswered wait if its time is up, or if a message came that interrupts it."""
    if wait.answered_at is None and interrupted:
        wait.answer = {PLAN: SEND_BACK, QUESTION: None}.get(wait.kind, DENY)
        wait.comment, wait.decided_by, wait.answered_at = "a message came instead of an answer", "interruption", now
    elif wait.answered_at is None and wait.deadline is not None and wait.deadline <= now:
        wait.answer, wait.decided_by, wait.answered_at = wait.default, "clock", now


def _answered(wait: Wait) -> Answered:
    approved = wait.answer is not None if wait.kind == QUESTION else wait.answer == APPROVE
    return Answered.model_validate({"about": wait.kind, "by": wait.decided_by, "approved": approved})
