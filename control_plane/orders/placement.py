"""Which drone gets an order, and why; or why none does.

The drone named by the order; else a drone with the wanted labels. Among these, a drone with a free slot is preferred to
a full one, then one that already has the repository to one that must fetch it, then the one with the least outstanding
work relative to its concurrency. A mirror counts only if a slot is free, so that one warm drone does not attract all of
a project's work while others idle. An order that resumes from a checkpoint goes first to the drone whose disk has it,
if that drone has a free slot or is the only one that has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.conversations.resumption import drone_needed, drone_with_workspace
from control_plane.core import Core
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.drones.load import Load, has_ability, load_by_drone, status_of, why_not_starting
from control_plane.lookups.drones import serves
from control_plane.orders.drone_refusals import refusals_of, unsuitable_drones
from shared.reasons import (
    DroneLabels,
    DroneState,
    EarlierOrder,
    NamedDroneRemoved,
    NoDrone,
    NoDroneFits,
    NoDroneTakesWork,
    Placed,
    Waits,
)
from shared.states import ENDED, TAKES_WORK
from shared.work_order import CHECKS


@dataclass(frozen=True)
class Placement:
    """The choice of a drone."""

    drone: Drone
    because: Placed


def place(db: Session, core: Core, order: Order) -> Placement | Waits:
    """The drone for a queued order, or why it has to wait; nothing is written.

    A drone named by the order is chosen even while it is offline.
    """
    if earlier := earlier_in_session(db, order):
        return EarlierOrder(order=earlier)
    refusals = _refusals(db, order)
    if order.wanted_drone_id is not None:
        return _named(db.get_one(Drone, order.wanted_drone_id), order, refusals)
    living = select(Drone).where(Drone.removed_at.is_(None)).order_by(Drone.name)
    fleet = [drone for drone in db.scalars(living) if serves(drone, order.organization_id) and _able(drone, order)]
    fitting = [drone for drone in fleet if _has(drone, order.wanted_labels)]
    if not fitting:
        return _no_drone_fits(fleet, order.wanted_labels)
    now, load = core.clock.now(), load_by_drone(db)
    able = [d for d in fitting if d.id not in refusals and status_of(d, load[d.id], now) in TAKES_WORK]
    if order.purpose in CHECKS:
        # They take no slot from other orders, so they do not wait in a queue either.
        able = [drone for drone in able if load[drone.id].outstanding < drone.concurrency]
    if not able:
        states = (
            refusals.get(drone.id) or why_not_starting(drone, load[drone.id], now) or _full(drone, load)
            for drone in fitting
        )
        return NoDroneTakesWork(states=tuple(states))
    return _with_the_work(db, order, able, load) or _best(able, load, _warm(db, order, able), order)


def _with_the_work(db: Session, order: Order, able: Sequence[Drone], load: Mapping[str, Load]) -> Placement | None:
    """The drone whose disk has the order's checkpoint, if it has a free slot or is the only one that has it."""
    kept = next((drone for drone in able if drone.id == drone_with_workspace(db, order)), None)
    if kept is None:
        return None
    if load[kept.id].outstanding < kept.concurrency:
        return _chosen(kept, "workspace", order)
    # Waiting for a slot costs less than repeating the work that only this drone has.
    return _chosen(kept, "only_workspace", order) if drone_needed(db, order) == kept.id else None


def earlier_in_session(db: Session, order: Order) -> str | None:
    """The earlier order of the same session that must end before this one may begin, if any."""
    earlier = select(Order.id).where(
        Order.session_id == order.session_id, Order.number < order.number, Order.status.not_in(ENDED)
    )
    return db.scalar(earlier.order_by(Order.number).limit(1))


def _named(drone: Drone, order: Order, refusals: Mapping[str, DroneState]) -> Placement | Waits:
    if drone.removed_at is not None:
        return NamedDroneRemoved(drone=drone.name, order=order.id)
    if refuses := refusals.get(drone.id):
        return NoDroneTakesWork(states=(refuses,))
    return Placement(drone, Placed(code="named", drone=drone.name))


def _refusals(db: Session, order: Order) -> Mapping[str, DroneState]:
    """Why drones will not run the order, by their ids."""

    def states(code: Literal["refuses", "unsuitable"], drones: Mapping[str, str]) -> dict[str, DroneState]:
        named = ((drone_id, db.get_one(Drone, drone_id).name, why) for drone_id, why in drones.items())
        return {drone_id: DroneState(drone=name, code=code, detail=why) for drone_id, name, why in named}

    return states("unsuitable", unsuitable_drones(db, order)) | states("refuses", refusals_of(db, order))


def _full(drone: Drone, load: Mapping[str, Load]) -> DroneState:
    """Its slots are about to be in use."""
    taken = min(load[drone.id].outstanding, drone.concurrency)
    return DroneState(drone=drone.name, code="busy", running=taken, slots=drone.concurrency)


def _best(able: Sequence[Drone], load: Mapping[str, Load], warm: set[str], order: Order) -> Placement:
    def preference(drone: Drone) -> tuple[bool, bool, float, bool, str]:
        outstanding = load[drone.id].outstanding
        full, cold = outstanding >= drone.concurrency, drone.id not in warm
        return (full, full or cold, outstanding / drone.concurrency, cold, drone.name)

    chosen = min(able, key=preference)
    if len(able) == 1:
        return _chosen(chosen, "only_drone", order)
    return _chosen(chosen, "least_work" if preference(chosen)[1] else "repository", order)


def _chosen(
    drone: Drone, code: Literal["workspace", "only_workspace", "only_drone", "repository", "least_work"], order: Order
) -> Placement:
    return Placement(drone, Placed(code=code, drone=drone.name, labels=_labels(order.wanted_labels)))


def _warm(db: Session, order: Order, drones: Sequence[Drone]) -> set[str]:
    """The drones that ran the project before, and therefore have a mirror of its repository."""
    # One row per drone is enough: scanning all past orders would take longer than everything else here.
    on_it = Order.project_id == order.project_id, Order.drone_id == Drone.id, Order.started_at.is_not(None)
    wanted = select(Drone.id).where(
        Drone.id.in_([drone.id for drone in drones]), select(Order.id).where(*on_it).exists()
    )
    return set(db.scalars(wanted))


def another_drone(db: Session, core: Core, order: Order) -> bool:
    """Whether a drone on which the order did not fail would take it now, and it may be tried once more."""
    refusals = _refusals(db, order)
    if order.wanted_drone_id is not None or len(unsuitable_drones(db, order)) >= order.max_attempts:
        return False
    load, now = load_by_drone(db), core.clock.now()
    drones = db.scalars(select(Drone).where(Drone.removed_at.is_(None), Drone.id.not_in(refusals)))
    return any(fits(drone, order) and status_of(drone, load[drone.id], now) in TAKES_WORK for drone in drones)


def fits(drone: Drone, order: Order) -> bool:
    """Whether the drone may run the order at all: it serves the organization, and has the ability and the labels."""
    return serves(drone, order.organization_id) and _able(drone, order) and _has(drone, order.wanted_labels)


def _able(drone: Drone, order: Order) -> bool:
    """Whether the drone's version supports the order; a drone that has never sent a beat is not ruled out."""
    if order.purpose in CHECKS:
        return has_ability(drone, "checks")
    plain = order.task_id is None and order.purpose == "work"
    return plain or drone.beat is None or "teams" in drone.beat.get("abilities", ())


def _has(drone: Drone, wanted: Mapping[str, str]) -> bool:
    return wanted.items() <= drone.labels.items()


def _no_drone_fits(fleet: Sequence[Drone], wanted: Mapping[str, str]) -> Waits:
    if not fleet:
        return NoDrone()
    known = tuple(DroneLabels(drone=drone.name, labels=_labels(drone.labels)) for drone in fleet)
    return NoDroneFits(labels=_labels(wanted), fleet=known)


def _labels(labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{key}={value}" for key, value in sorted(labels.items()))
