"""Races: which of several orders for one prompt wins, and what the others may not do meanwhile.

A winner is chosen once, under the lock of the race's row: when the first order whose work is verified asks to push, or
by `take`. No order of a race pushes before, and afterwards only the winner does.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.groups import OrderGroup
from control_plane.db.orders import Order
from control_plane.orders.conversations.upstream import foundation_of
from shared.errors import Precondition
from shared.outcome import Verification
from shared.reasons import RaceBase
from shared.states import IN_HAND, OrderStatus

_STARTED = (*IN_HAND, OrderStatus.CANCELING)


def race_of(db: Session, order: Order, *, lock: bool = False) -> OrderGroup | None:
    """The race that the order is in, if any."""
    if order.group_id is None:
        return None
    # By its key: placing asks for each drone, and the session has the row after the first time.
    group = db.get_one(OrderGroup, order.group_id, with_for_update=lock or None, populate_existing=lock)
    return group if group.kind == "race" else None


def orders_of(db: Session, race: OrderGroup) -> Sequence[Order]:
    """Its orders, in the order in which they were submitted."""
    return db.scalars(select(Order).where(Order.group_id == race.id).order_by(Order.number)).all()


def note_base(db: Session, order: Order, commit: str | None) -> bool:
    """Record what the race starts from, if this is its first order to find it; whether it was. Empty: no commit yet."""
    race = race_of(db, order, lock=True)
    if race is None or race.base_commit is not None:
        return False
    race.base_commit = commit or ""
    return True


def base_of_race(db: Session, order: Order) -> str | None:
    """The commit that the race starts from; None if it is in none, or it is not known yet."""
    race = race_of(db, order)
    return (race.base_commit or None) if race is not None else None


def waits_for_base(db: Session, order: Order) -> RaceBase | None:
    """Why an order of a race waits: another one is about to find the commit that all of them start from."""
    race = race_of(db, order)
    if race is None or race.base_commit is not None or order.wanted_commit is not None:
        return None
    started = (Order.group_id == race.id, Order.id != order.id, Order.status.in_(_STARTED))
    other = db.scalar(select(Order.id).where(*started).order_by(Order.number).limit(1))
    if other is None or foundation_of(db, order).base is not None:
        return None
    return RaceBase(order=other)


def drones_of_race(db: Session, order: Order) -> set[str]:
    """The drones that have other orders of the same race now."""
    if race_of(db, order) is None:
        return set()
    others = (Order.group_id == order.group_id, Order.id != order.id, Order.ended_at.is_(None))
    return {drone_id for drone_id in db.scalars(select(Order.drone_id).where(*others)) if drone_id is not None}


def check_push(db: Session, order: Order, verification: Verification) -> None:
    """Return if the order may push, which decides a race that waits for its first verified work.

    Raises Precondition: the work of an order that did not win is kept as patch and bundle.
    """
    race = race_of(db, order, lock=True)
    if race is None or _wins(race, order, verification):
        return
    if race.winner_id is None:
        why = "its work is not verified" if race.pick == "first" else "the race is not decided yet"
        advice = f"fleet race take {race.id} {order.id}    pushes its work"
    else:
        why, advice = f"order {race.winner_id} won", f"fleet patch {order.id}"
    raise Precondition(f"an order of race {race.id} pushes only if it wins, and {why}", code="E-RACE-PUSH", next=advice)


def order_ended(db: Session, _core: Core, order: Order) -> None:
    """An order whose verified work was not pushed, for example because the drone may not, wins too."""
    if order.status != OrderStatus.SUCCEEDED or order.head_commit is None:
        return
    race = race_of(db, order, lock=True)
    if race is not None:
        _wins(race, order, Verification(order.verification or Verification.NOT_REACHED))


def _wins(race: OrderGroup, order: Order, verification: Verification) -> bool:
    """Whether the order is the winner, which it becomes if there is none and its work is the first to be verified."""
    if race.winner_id is None and race.pick == "first" and verification is Verification.VERIFIED:
        race.winner_id = order.id
    return race.winner_id == order.id
