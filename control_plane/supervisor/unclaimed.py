"""Published orders that no drone has claimed: published again, moved to another drone, or recorded as claimed.

An order leaves a queue only by a compare-and-swap on its key, which the claim uses too: one of the two comes first, and
the other sees it. So no order runs twice, however close a move comes to a claim.

If the broker was emptied, the key is missing, and it is unknown whether the run was claimed before: its events and
beats may still be on their way. If the drone can answer, wait for its next beat, which names every run that it holds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Row, select, update
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.core.background.timings import Timings
from control_plane.core.rows import each_alone
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run
from control_plane.drones.condition import SILENT, Load, load_by_drone, status_of, why_not_starting
from control_plane.orders.assignment import dispatch
from control_plane.orders.conversations.resumption import drone_needed
from control_plane.orders.drone_refusals import refusals_of, unsuitable_drones
from control_plane.orders.ending import requeue
from control_plane.orders.lost import withdraw
from control_plane.orders.placement import Placement, fits
from control_plane.supervisor.outbox_relay import Relay
from shared import names
from shared.errors import Conflict
from shared.reasons import DroneState, Placed, Returned, TakenBack, WithdrawnBeforeStart
from shared.states import DroneStatus, OrderStatus
from shared.terminal import logs

log = logs.get(__name__)

_GONE = (DroneStatus.OFFLINE, DroneStatus.DRAINING, DroneStatus.REMOVED)
OFFERS = 4
"""How often a drone with a free slot is sent the same run again, before the order gets another one."""
_NO_SLOT = (DroneStatus.BUSY, DroneStatus.UNRESPONSIVE)


@dataclass(frozen=True)
class _UnclaimedDispatch:
    dispatch: Dispatch
    order: Order
    drone: Drone
    status: DroneStatus
    state: DroneState | None
    """Why the drone does not start it; None if it could."""
    bound: bool
    """It resumes from data that only this drone's disk has."""
    would_not_run: Set[str]
    """The ids of drones that it does not move to, since they would refuse it or fail."""


class Unclaimed:
    """Watches the orders in the drones' queues. The run's key tells whether it was claimed."""

    def __init__(self, core: Core, relay: Relay, timings: Timings) -> None:
        self._core = core
        self._relay = relay
        self._after = timedelta(seconds=timings.unclaimed_after)
        self._rebalance_after = timedelta(seconds=timings.rebalance_after)
        self._beat_age = timedelta(seconds=timings.beat_age)
        self._missing: dict[str, datetime] = {}
        """Runs whose key is missing, each with the time at which that was first seen."""
        self._offers: Counter[str] = Counter()
        """How often each of these runs was published again."""

    def check(self) -> None:
        """One round over all published dispatches that no event or beat has named yet."""
        waiting, free = self._waiting()
        keys = self._keys(waiting)
        now = self._core.clock.now()
        self._missing = {run_id: self._missing.get(run_id, now) for run_id, key in keys.items() if not key}
        self._offers = Counter({run_id: self._offers[run_id] for run_id in keys})
        self._note_claims([each for each in waiting if keys[each.dispatch.id].startswith("claimed:")])
        unclaimed = (each for each in waiting if not keys[each.dispatch.id].startswith("claimed:"))
        each_alone("unclaimed", unclaimed, lambda each: self._act(each, keys[each.dispatch.id], free))

    def _act(self, waiting: _UnclaimedDispatch, key: str, free: _FreeSlots | None) -> None:
        revoked = key == names.revoked(waiting.dispatch.generation)
        if waiting.order.status == OrderStatus.CANCELING:
            if not revoked:
                self._cancel(waiting)
        elif revoked:
            # The process that revoked it died before it updated the order.
            self._send_back(waiting, WithdrawnBeforeStart())
        elif not key and self._may_be_at_work(waiting):
            pass  # Decided in a later round, after the next beat.
        elif waiting.state and waiting.status in _GONE and self._may_move(waiting):
            self._move(waiting, TakenBack(state=waiting.state), if_missing=not key or waiting.status in SILENT)
        elif waiting.status is DroneStatus.ONLINE or (not key and waiting.status not in SILENT):
            self._publish_anew(waiting)
        elif waiting.state and waiting.status in _NO_SLOT and key == names.dispatched(waiting.dispatch.generation):
            self._rebalance(waiting, TakenBack(state=waiting.state), free)

    def _may_be_at_work(self, waiting: _UnclaimedDispatch) -> bool:
        """Whether a run without a key may have been claimed by a drone that has not reported it yet.

        A beat written more than `beat_age` after the key was found missing was also sent after that. If it had named
        the run, the run would not be among the unclaimed.
        """
        last_seen = waiting.drone.last_seen_at
        if waiting.status in SILENT or last_seen is None:
            return False
        return last_seen - self._missing[waiting.dispatch.id] <= self._beat_age

    def _publish_anew(self, waiting: _UnclaimedDispatch) -> None:
        """Publish key and message again, for a free slot or as the key is missing; no claimed or revoked key changes.

        A drone that takes the message again and again without a claim has a directory of this run: it ended there after
        the backup from which the database was restored. The order then gets another run.
        """
        published = waiting.dispatch.published_at
        if published is None or self._core.clock.now() - published < self._after:
            return
        drone_id, run_id = waiting.drone.id, waiting.dispatch.id
        self._core.broker.offer_run(drone_id, run_id, waiting.dispatch.generation)
        # A message still in the queue is not duplicated; the drone will get to it.
        if self._core.broker.queue_length(drone_id) > 0:
            return
        if self._offers[run_id] >= OFFERS:
            self._move(waiting, WithdrawnBeforeStart(), if_missing=False)
        else:
            self._offers[run_id] += 1
            log.info("published again", order=waiting.order.id, run=run_id, drone=drone_id)
            self._relay.publish([run_id])

    def _may_move(self, waiting: _UnclaimedDispatch) -> bool:
        """Whether the order may move. One that names its drone waits for it until the drone is removed."""
        return waiting.order.wanted_drone_id is None or waiting.status is DroneStatus.REMOVED

    def _move(self, waiting: _UnclaimedDispatch, why: Returned, *, if_missing: bool) -> None:
        dispatch = waiting.dispatch
        address = waiting.drone.id, dispatch.id, dispatch.generation
        found = self._core.broker.withdraw_run(*address, if_missing=if_missing)
        if not found.startswith("claimed:") and (found or if_missing):
            self._send_back(waiting, why)

    def _rebalance(self, waiting: _UnclaimedDispatch, why: TakenBack, free: _FreeSlots | None) -> None:
        """Move an order that has waited for a while behind a drone without a free slot to one that has one.

        Unlike with a drone that is gone, a missing key proves nothing: this drone may be running the order.
        """
        dispatch, published = waiting.dispatch, waiting.dispatch.published_at
        waited = self._core.clock.now() - published if published is not None else timedelta()
        if waiting.order.wanted_drone_id is not None or waiting.bound or waited < self._rebalance_after:
            return
        target = free.take(waiting.order, waiting.would_not_run) if free is not None else None
        if target is None:
            return
        address = waiting.drone.id, dispatch.id, dispatch.generation
        found = self._core.broker.withdraw_run(*address, if_missing=False)
        if found == names.dispatched(dispatch.generation):
            _hand_over(self._core, dispatch, target, why)

    def _send_back(self, waiting: _UnclaimedDispatch, why: Returned) -> None:
        with self._core.database.write() as db:
            order = db.get_one(Order, waiting.order.id, with_for_update=True)
            current = order.run_id == waiting.dispatch.id and order.status == OrderStatus.ASSIGNED
            if current:
                requeue(db, self._core, order, why)
        if current:
            self._core.broker.changed(waiting.order.id)

    def _cancel(self, waiting: _UnclaimedDispatch) -> None:
        """Finish a cancel for which the broker was unavailable; now the key can tell whether the order ever ran."""
        dispatch = waiting.dispatch
        found = self._core.broker.withdraw_run(waiting.drone.id, dispatch.id, dispatch.generation)
        if found != names.dispatched(dispatch.generation):
            return
        with self._core.database.write() as db:
            order = db.get_one(Order, waiting.order.id, with_for_update=True)
            current = order.run_id == dispatch.id and order.status == OrderStatus.CANCELING
            if current:
                withdraw(db, self._core, order, None)
        self._core.broker.changed(waiting.order.id)

    def _note_claims(self, claimed: Iterable[_UnclaimedDispatch]) -> None:
        ids = [each.dispatch.id for each in claimed]
        if ids:
            with self._core.database.write() as db:
                unnoted = update(Dispatch).where(Dispatch.id.in_(ids), Dispatch.claimed_at.is_(None))
                db.execute(unnoted.values(claimed_at=self._core.clock.now()))

    def _waiting(self) -> tuple[list[_UnclaimedDispatch], _FreeSlots | None]:
        """The orders in the queues, urgent ones first, and the free slots of all drones if one waits for a slot.

        Most rounds need no free slot, and a fleet may have thousands of drones.
        """
        unclaimed = (
            select(Dispatch, Order, Drone)
            .join(Order, Order.id == Dispatch.order_id)
            .join(Drone, Drone.id == Dispatch.drone_id)
            .outerjoin(Run, Run.id == Dispatch.id)
            .where(
                Dispatch.published_at.is_not(None),
                Dispatch.closed_at.is_(None),
                Dispatch.claimed_at.is_(None),
                Run.id.is_(None),
            )
            .order_by(Order.priority.desc(), Order.number)
        )
        now = self._core.clock.now()
        with self._core.database.read() as db:
            load: defaultdict[str, Load] = load_by_drone(db)

            def read(row: Row[Dispatch, Order, Drone]) -> _UnclaimedDispatch:
                dispatch, order, drone = row
                status, state = status_of(drone, load[drone.id], now), why_not_starting(drone, load[drone.id], now)
                bound = drone_needed(db, order) == drone.id
                return _UnclaimedDispatch(
                    dispatch, order, drone, status, state, bound, _would_not_run(db, order, status)
                )

            waiting = each_alone("unclaimed", db.execute(unclaimed).all(), read)
            moves = any(each.status in _NO_SLOT for each in waiting)
            return waiting, _FreeSlots(db, load, now) if moves else None

    def _keys(self, waiting: Iterable[_UnclaimedDispatch]) -> dict[str, str]:
        by_drone: defaultdict[str, list[str]] = defaultdict(list)
        for each in waiting:
            by_drone[each.drone.id].append(each.dispatch.id)
        found: dict[str, str] = {}
        for drone_id, run_ids in by_drone.items():
            found |= self._core.broker.run_keys(drone_id, run_ids)
        return found


# --- moving an order that waits behind a full drone to one that can start it now ------------------


class _FreeSlots:
    """The slots of online drones that no order holds or is about to hold, as one round found them.

    Each is given out once per round. A moved order therefore begins, and does not move again.
    """

    def __init__(self, db: Session, load: Mapping[str, Load], now: datetime) -> None:
        self._db = db
        self._free: dict[Drone, int] = {}
        for drone in db.scalars(select(Drone).where(Drone.removed_at.is_(None)).order_by(Drone.name)):
            free = drone.concurrency - load[drone.id].outstanding
            if free > 0 and status_of(drone, load[drone.id], now) is DroneStatus.ONLINE:
                self._free[drone] = free

    def take(self, order: Order, would_not_run: Set[str]) -> Drone | None:
        """Take a slot of the fitting drone with the largest share of free slots; None if no drone fits."""
        able = [drone for drone, free in self._free.items() if free > 0 and drone.id not in would_not_run]
        fitting = [drone for drone in able if fits(drone, order)]
        if not fitting:
            return None
        chosen = max(fitting, key=lambda drone: self._free[drone] / drone.concurrency)
        self._free[chosen] -= 1
        return chosen


def _would_not_run(db: Session, order: Order, status: DroneStatus) -> Set[str]:
    """The drones that refuse the order or lack what it needs, if it may leave a drone of this status for another."""
    if order.generation == 1 or status not in _NO_SLOT:
        return frozenset()
    return {*refusals_of(db, order), *unsuitable_drones(db, order)}


def _hand_over(core: Core, waited: Dispatch, target: Drone, why: TakenBack) -> None:
    """Send an order whose offer was withdrawn to `target`, or back to the queue if `target` has no room any more."""
    try:
        _assign_to(core, waited, target, why)
    except Conflict as error:
        # An earlier order of its session was queued again meanwhile. The next round finds the key revoked and
        # requeues this order.
        log.info("an order was not moved to another queue", order=waited.order_id, why=error.what)
        return
    core.broker.changed(waited.order_id)


def _assign_to(core: Core, waited: Dispatch, target: Drone, why: TakenBack) -> None:
    with core.database.write() as db:
        order = db.get_one(Order, waited.order_id, with_for_update=True)
        if order.run_id != waited.id or order.status != OrderStatus.ASSIGNED:
            return
        requeue(db, core, order, why)
        drone = db.get_one(Drone, target.id)
        load = load_by_drone(db, [drone.id])[drone.id]
        has_room = load.outstanding < drone.concurrency
        if has_room and status_of(drone, load, core.clock.now()) is DroneStatus.ONLINE:
            dispatch(db, core, order, Placement(drone, Placed(code="free_slot", drone=drone.name)))
    log.info(
        "an order was moved to another queue", order=order.id, left=why.state.drone, why=why.state.code, to=target.name
    )
