"""What pools could do for the orders that wait: how many drones each should have, and what such an order is told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.db.access import JoinToken, Pool
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.drones.condition import Load, load_by_drone, status_of
from control_plane.drones.pool_members import is_there, members_of
from control_plane.orders.conversations.resumption import drone_needed
from control_plane.orders.drone_refusals import refusals_of, unsuitable_drones
from shared.reasons import ForPool, NoDrone, NoDroneFits, NoDroneTakesWork
from shared.states import TAKES_WORK, OrderStatus
from shared.work_order import GIVES_WAY

_NO_DRONE = (NoDrone, NoDroneFits, NoDroneTakesWork, ForPool)


@dataclass(frozen=True)
class PoolNeed:
    """A pool, and how many drones it has and should have."""

    pool: Pool
    token: JoinToken
    drones: int
    """There now."""
    working: int
    """Those of them that have an order."""
    waiting: int
    """Orders that a drone of it could run, and that no drone has room for."""
    wanted: int
    """The number of drones that there should be now."""


def pools_of(db: Session, organization_id: str | None = None) -> list[tuple[Pool, JoinToken]]:
    """The pools that were not removed, with their tokens, by name; of one organization or of all."""
    rows = select(Pool, JoinToken).join(JoinToken, JoinToken.id == Pool.token_id).where(Pool.removed_at.is_(None))
    if organization_id is not None:
        rows = rows.where(Pool.organization_id == organization_id)
    return [(pool, token) for pool, token in db.execute(rows.order_by(Pool.name, Pool.id))]


def pool_needs(db: Session, now: datetime, pools: Sequence[tuple[Pool, JoinToken]]) -> list[PoolNeed]:
    """What each of these pools has and needs, in their order. Two pools that fit one order both count it."""
    if not pools:
        return []
    load, members = load_by_drone(db), members_of(db, [pool.id for pool, _ in pools])
    waiting = list(_without_room(db, now, load))
    refuse = {order.id: _pools_that_refuse(db, order) for order in waiting if order.generation}
    needs = []
    for pool, token in pools:
        there = [drone for drone in members[pool.id] if is_there(drone, now)]
        working = sum(load[drone.id].outstanding > 0 for drone in there)
        orders = [order for order in waiting if _fits(pool, token, order, refuse.get(order.id, ()))]
        more = _drones_for(orders, there) if is_usable(token, now) else 0
        wanted = min(working + more, pool.max_drones)
        needs.append(PoolNeed(pool, token, len(there), working, len(orders), wanted))
    return needs


def _drones_for(orders: Sequence[Order], there: Sequence[Drone]) -> int:
    """How many drones the orders need, if each is as large as the smallest one that is there."""
    size = min((drone.concurrency for drone in there), default=1)
    # Titles and checks give way to work, so one drone is enough for all of them.
    work = sum(order.purpose not in GIVES_WAY for order in orders)
    return -(-work // size) or (1 if orders else 0)


def is_usable(token: JoinToken, now: datetime) -> bool:
    """Whether drones may join with it."""
    return token.revoked_at is None and token.expires_at > now


def pool_for(db: Session, order: Order, now: datetime) -> ForPool | None:
    """The first pool by name that could run an order for which no drone is there; None if none could."""
    pools = [each for each in pools_of(db, order.organization_id) if is_usable(each[1], now)]
    if not pools:
        return None
    refuse = _pools_that_refuse(db, order)
    fitting = [pool for pool, token in pools if _fits(pool, token, order, refuse)]
    if not fitting:
        return None
    there = [each for each in members_of(db, [fitting[0].id])[fitting[0].id] if is_there(each, now)]
    return ForPool(pool=fitting[0].name, drones=len(there), at_most=fitting[0].max_drones)


def _fits(pool: Pool, token: JoinToken, order: Order, refuse: Container[str | None]) -> bool:
    """Whether a drone of the pool could run the order; one that refused it stands for all of its pool."""
    own = pool.organization_id == order.organization_id and pool.id not in refuse
    return own and order.wanted_labels.items() <= token.labels.items()


def _pools_that_refuse(db: Session, order: Order) -> set[str | None]:
    refusing = {*refusals_of(db, order), *unsuitable_drones(db, order)}
    return set(db.scalars(select(Drone.pool_id).where(Drone.id.in_(refusing)))) if refusing else set()


def _without_room(db: Session, now: datetime, load: Mapping[str, Load]) -> Iterator[Order]:
    """Orders for which no drone is there, and those in the queue of a drone beyond its free slots."""
    for_any = Order.ended_at.is_(None), Order.wanted_drone_id.is_(None)
    queued = db.scalars(select(Order).where(*for_any, Order.status == OrderStatus.QUEUED))
    yield from (order for order in queued if isinstance(order.facts.waits, _NO_DRONE))
    assigned = select(Order).where(*for_any, Order.status == OrderStatus.ASSIGNED)
    queues: defaultdict[str, list[Order]] = defaultdict(list)
    for order in db.scalars(assigned.order_by(Order.priority.desc(), Order.number)):
        queues[str(order.drone_id)].append(order)
    drones = {each.id: each for each in db.scalars(select(Drone).where(Drone.id.in_(queues)))}
    for drone_id, orders in queues.items():
        drone, taken = drones[drone_id], load[drone_id]
        takes = status_of(drone, taken, now) in TAKES_WORK
        room = max(0, drone.concurrency - taken.running) if takes else 0
        yield from (order for order in orders[room:] if not (order.generation > 1 and _bound(db, order)))


def _bound(db: Session, order: Order) -> bool:
    """Whether only the drone that has it can continue it."""
    return drone_needed(db, order) == order.drone_id
