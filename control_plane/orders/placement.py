"""Which drone gets an order, and why; or why none does.

The drone named by the order; else a drone with the wanted labels. Among these, a drone with a free slot is preferred to
a full one, then the one with the best score (`control_plane.orders.scores`). An order that resumes from a checkpoint
goes first to the drone whose disk has it, if that drone has a free slot or is the only one that has it. In a large
fleet, only the likely ones are scored (`_likely_drones`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import nsmallest
from typing import Literal

from sqlalchemy import String, cast, func, or_, select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.core.lookups.drones import serves
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.drones.condition import TAKEN, Load, load_by_drone, status_of, why_not_starting
from control_plane.money.rates.groups import seconds_until_calls
from control_plane.orders.conversations.resumption import drone_needed, drone_with_workspace
from control_plane.orders.drone_refusals import refusals_of, unsuitable_drones
from control_plane.orders.pools import pool_for
from control_plane.orders.races import drones_of_race, waits_for_base
from control_plane.orders.scores import Candidate, score, usual_of
from shared.reasons import (
    AfterOrder,
    DroneLabels,
    DroneScore,
    DroneState,
    EarlierOrder,
    NamedDroneRemoved,
    NoDrone,
    NoDroneFits,
    NoDroneTakesWork,
    Placed,
    Waits,
)
from shared.states import ENDED, TAKES_WORK, UNRESPONSIVE_AFTER, OrderStatus
from shared.work_order import GIVES_WAY

SHOWN_SCORES = 8
"""How many of the best scores are kept with a placement."""


@dataclass(frozen=True)
class Placement:
    """The choice of a drone."""

    drone: Drone
    because: Placed
    scores: tuple[DroneScore, ...] = ()
    """The best, its own first."""
    scored: int = 0


def place(db: Session, core: Core, order: Order) -> Placement | Waits:
    """The drone for a queued order, or why it has to wait; nothing is written.

    A drone named by the order is chosen even while it is offline.
    """
    if waits := earlier_in_session(db, order) or before_it(db, order) or waits_for_base(db, order):
        return waits
    refusals = _refusals(db, order)
    if order.wanted_drone_id is not None:
        return _named(db.get_one(Drone, order.wanted_drone_id), order, refusals)
    return _among_likely(db, core, order, refusals) or _among_all(db, core, order, refusals)


def _among_likely(db: Session, core: Core, order: Order, refusals: Mapping[str, DroneState]) -> Placement | None:
    """None if all drones have to be read, to find a drone or to tell why there is none."""
    now = core.clock.now()
    likely = _likely_drones(db, order, now, drone_with_workspace(db, order))
    fitting, load = [drone for drone in likely if fits(drone, order)], load_by_drone(db, [drone.id for drone in likely])
    able = _able(order, fitting, load, refusals, now)
    if not able or (len(able) == 1 and len(likely) == ENOUGH):
        return None
    return _with_the_work(db, order, able, load) or _best(db, core, order, able, load)


def _among_all(db: Session, core: Core, order: Order, refusals: Mapping[str, DroneState]) -> Placement | Waits:
    living = select(Drone).where(Drone.removed_at.is_(None)).order_by(Drone.name)
    fleet = [drone for drone in db.scalars(living) if serves(drone, order.organization_id)]
    fitting = [drone for drone in fleet if _has(drone, order.wanted_labels)]
    now, load = core.clock.now(), load_by_drone(db)
    if not fitting:
        return pool_for(db, order, now) or _no_drone_fits(fleet, order.wanted_labels)
    if able := _able(order, fitting, load, refusals, now):
        return _with_the_work(db, order, able, load) or _best(db, core, order, able, load)
    states = (
        refusals.get(drone.id) or why_not_starting(drone, load[drone.id], now) or _full(drone, load)
        for drone in fitting
    )
    return pool_for(db, order, now) or NoDroneTakesWork(states=tuple(states))


def _able(
    order: Order, drones: Sequence[Drone], load: Mapping[str, Load], refusals: Mapping[str, DroneState], now: datetime
) -> list[Drone]:
    """Those of the fitting drones that take the order now."""
    able = [d for d in drones if d.id not in refusals and status_of(d, load[d.id], now) in TAKES_WORK]
    if order.purpose not in GIVES_WAY:
        return able
    # They take no slot from other orders, so they do not wait in a queue either.
    return [drone for drone in able if load[drone.id].outstanding < drone.concurrency]


def _with_the_work(db: Session, order: Order, able: Sequence[Drone], load: Mapping[str, Load]) -> Placement | None:
    """The drone whose disk has the order's checkpoint, if it has a free slot or is the only one that has it."""
    kept = next((drone for drone in able if drone.id == drone_with_workspace(db, order)), None)
    if kept is None:
        return None
    if load[kept.id].outstanding < kept.concurrency:
        return _chosen(kept, "workspace", order)
    # Waiting for a slot costs less than repeating the work that only this drone has.
    return _chosen(kept, "only_workspace", order) if drone_needed(db, order) == kept.id else None


def earlier_in_session(db: Session, order: Order) -> EarlierOrder | None:
    """The earlier order of the same session that must end before this one may begin, if any."""
    earlier = select(Order.id).where(
        Order.session_id == order.session_id, Order.number < order.number, Order.status.not_in(ENDED)
    )
    found = db.scalar(earlier.order_by(Order.number).limit(1))
    return EarlierOrder(order=found) if found is not None else None


def before_it(db: Session, order: Order) -> AfterOrder | None:
    """The first of the orders that must succeed before this one and have not; one that ended comes before open ones."""
    others = [db.get_one(Order, each) for each in order.after]
    missing = [other for other in others if other.status != OrderStatus.SUCCEEDED]
    if not missing:
        return None
    first = next((other for other in missing if other.status in ENDED), missing[0])
    match first.status:
        case OrderStatus.FAILED:
            return AfterOrder(order=first.id, status="failed", waiting=order.id)
        case OrderStatus.CANCELED:
            return AfterOrder(order=first.id, status="canceled", waiting=order.id)
        case _:
            return AfterOrder(order=first.id, status="open", waiting=order.id)


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


def _best(db: Session, core: Core, order: Order, able: Sequence[Drone], load: Mapping[str, Load]) -> Placement:
    if len(able) == 1:
        return _chosen(able[0], "only_drone", order)
    warm, rivals = _warm(db, order, able), drones_of_race(db, order)
    provider = db.get_one(Provider, order.provider_id)
    permits = seconds_until_calls(core, provider, order.model, [drone.id for drone in able])
    project, now = db.get_one(Project, order.project_id), core.clock.now()
    usual = usual_of(project.run_s, project.clone_s)
    scores = {
        drone: score(
            Candidate(
                drone=drone.name,
                slots=drone.concurrency,
                outstanding=load[drone.id].outstanding,
                has_mirror=drone.id in warm,
                has_rival=drone.id in rivals,
                permit_s=permits.get(drone.id, 0.0),
                hours_left_s=_hours_left(drone, now),
            ),
            usual,
        )
        for drone in able
    }
    best = nsmallest(SHOWN_SCORES, able, key=scores.__getitem__)
    chosen = scores[best[0]]
    code: Literal["repository", "least_work"] = "least_work" if chosen.is_full or chosen.clone_s else "repository"
    shown = tuple(scores[drone].as_fact() for drone in best)
    return replace(_chosen(best[0], code, order), scores=shown, scored=len(able))


def _hours_left(drone: Drone, now: datetime) -> float | None:
    """By its last beat; None: it has no such hours."""
    said = (drone.beat or {}).get("hours_left_s")
    if said is None or drone.last_seen_at is None:
        return None
    return max(0.0, float(said) - (now - drone.last_seen_at).total_seconds())


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
    """Whether the drone may run the order at all: it serves the organization, and has the labels."""
    return serves(drone, order.organization_id) and _has(drone, order.wanted_labels)


def _has(drone: Drone, wanted: Mapping[str, str]) -> bool:
    return wanted.items() <= drone.labels.items()


def _no_drone_fits(fleet: Sequence[Drone], wanted: Mapping[str, str]) -> Waits:
    if not fleet:
        return NoDrone()
    known = tuple(DroneLabels(drone=drone.name, labels=_labels(drone.labels)) for drone in fleet)
    return NoDroneFits(labels=_labels(wanted), fleet=known)


def _labels(labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{key}={value}" for key, value in sorted(labels.items()))


# --- the drones worth scoring, sorted and limited by the database ---------------------------------
#
# To read and score every drone for each order takes longer than all else of its placement, from some hundred drones on.

ENOUGH = 64
"""How many drones are scored for an order; in a fleet of no more, all that take work."""


def _likely_drones(db: Session, order: Order, now: datetime, first: str | None) -> Sequence[Drone]:
    """At most `ENOUGH` drones that take work, as they are preferred: the drone `first`, then a drone with a free slot,
    with the repository, with the smallest load.

    What the database cannot tell is left to the caller: labels, abilities, whether a drone that serves other
    organizations serves this one, and what only its last beat says.
    """
    taken = select(Order.drone_id, func.count().label("orders"))
    taken_by = taken.where(Order.ended_at.is_(None), Order.status.in_(TAKEN)).group_by(Order.drone_id).subquery()
    outstanding = func.coalesce(taken_by.c.orders, 0)
    on_it = Order.project_id == order.project_id, Order.drone_id == Drone.id, Order.started_at.is_not(None)
    has_mirror = select(Order.id).where(*on_it).exists()
    preferred = (
        Drone.id != (first or ""),
        outstanding >= Drone.concurrency,
        has_mirror.desc(),
        1.0 * outstanding / Drone.concurrency,
        Drone.name,
    )
    taking_work = (
        Drone.removed_at.is_(None),
        Drone.stopped_at.is_(None),
        Drone.last_seen_at > now - UNRESPONSIVE_AFTER,
        Drone.draining.is_(False),
        Drone.over_quota_at.is_(None),
        or_(Drone.organization_id == order.organization_id, cast(Drone.serves, String) != "[]"),
    )
    with_load = select(Drone).outerjoin(taken_by, taken_by.c.drone_id == Drone.id)
    return db.scalars(with_load.where(*taking_work).order_by(*preferred).limit(ENOUGH)).all()
