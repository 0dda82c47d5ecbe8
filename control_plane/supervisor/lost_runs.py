"""Runs are lost if their drone falls silent or beats without naming them: revoked, and their orders queued again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from sqlalchemy import Row, Select, or_, select

from control_plane.broker.broker import WAKE
from control_plane.core import Core
from control_plane.core.background.timings import Timings
from control_plane.core.rows import each_alone
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run
from control_plane.drones.condition import is_today
from control_plane.orders.lost import Loss, lose_runs
from shared import names
from shared.reasons import RunLoss
from shared.states import OrderStatus
from shared.subscriptions import CheckedSubscription

_MOST_WAITS = 10
"""How many times `lost_after` the runs of a silent drone are kept while its events wait for a collector.

The end of a run may be among them, as when the collectors were away while the drone finished its work and was stopped.
"""


@dataclass(frozen=True)
class _HeldRun:
    """A run that a drone claimed, or that is being canceled, and when a beat last named it."""

    dispatch: Dispatch
    drone: Drone
    last_named: datetime


def take_back_lost_runs(core: Core, heartbeats: HeartbeatMonitor, timings: Timings) -> list[str]:
    """Give up every lost run; returns the orders that changed. No run is lost while this side may be missing beats."""
    with core.database.read() as db:
        taken = each_alone("lost", db.execute(_taken()).all(), _held)
    return lose_runs(core, filter(None, each_alone("lost", taken, partial(_loss, core, heartbeats, timings))))


def _loss(core: Core, heartbeats: HeartbeatMonitor, timings: Timings, held: _HeldRun) -> Loss | None:
    now, limit = core.clock.now(), timedelta(seconds=timings.lost_after)
    drone, last_seen = held.drone, held.drone.last_seen_at or held.last_named
    quiet = heartbeats.silent_for(drone.id) >= timings.lost_after
    if drone.removed_at is not None:
        return _as_loss(held, RunLoss(code="drone_removed", drone=drone.name), last_seen)
    # The lease key is checked last: it is renewed with each beat, and so overrules a broken subscription.
    if now - last_seen >= limit and quiet and core.broker.lease(drone.id) is None:
        if now - last_seen < _MOST_WAITS * limit and core.broker.backlogs([drone.id])[drone.id].unstored:
            return None
        silent = RunLoss(code="drone_silent", drone=drone.name, since=last_seen, today=is_today(last_seen, now))
        return _as_loss(held, silent, last_seen)
    beats = now - last_seen < limit / 2
    if beats and last_seen - held.last_named >= limit:
        return _as_loss(held, RunLoss(code="run_missing", drone=drone.name))
    return None


def _as_loss(held: _HeldRun, why: RunLoss, since: datetime | None = None) -> Loss:
    return Loss(held.dispatch.id, held.drone.id, held.dispatch.generation, why, since)


def _taken() -> Select[Dispatch, Drone, Run | None]:
    return (
        select(Dispatch, Drone, Run)
        .join(Drone, Drone.id == Dispatch.drone_id)
        .join(Order, Order.id == Dispatch.order_id)
        .outerjoin(Run, Run.id == Dispatch.id)
        .where(
            Dispatch.closed_at.is_(None),
            Dispatch.published_at.is_not(None),
            or_(Dispatch.claimed_at.is_not(None), Run.id.is_not(None), Order.status == OrderStatus.CANCELING),
        )
    )


def _held(taken: Row[Dispatch, Drone, Run | None]) -> _HeldRun:
    dispatch, drone, run = taken
    times = [dispatch.created_at, dispatch.published_at, dispatch.claimed_at]
    if run is not None:
        times += [run.started_at, run.beat_at]
    elif _names(drone, dispatch.id):
        # Claimed but not begun: on a busy machine this may take longer than `lost_after`.
        times.append(drone.last_seen_at)
    return _HeldRun(dispatch, drone, max(time for time in times if time is not None))


def _names(drone: Drone, run_id: str) -> bool:
    """Whether the drone's last beat names the run."""
    return any(run.get("run_id") == run_id for run in (drone.beat or {}).get("runs", ()))


# --- which drones are silent ----------------------------------------------------------------------
#
# The own beat goes through the same broker and the same subscription as those of the drones. The silence of a drone
# means something only while the own beat keeps coming back.

_MISSED = 3
"""Own beats that may be missing before the subscription counts as broken."""


class Wake(Protocol):
    """Wakes the quick loops immediately; with `everything` also those that run seldom."""

    def __call__(self, *, everything: bool) -> None: ...


class HeartbeatMonitor:
    """The supervisor's subscription to wake-up messages, the drones' beats and its own beat.

    It listens in one thread; its results may be read from any.
    """

    def __init__(self, core: Core, holder: str, timings: Timings, wake: Wake) -> None:
        self._core = core
        self._id = holder
        self._every = timings.own_beat
        self._wait = min(timings.stop_within, timings.own_beat / 2)
        self._wake = wake
        self._pubsub: CheckedSubscription | None = None
        self._closed = False
        self._sent_at = float("-inf")
        self._own_at = float("-inf")
        self._steady_since: float | None = None
        self._heard: dict[str, float] = {}

    def listen(self) -> None:
        """Wait for one message and act on it; send the own beat when it is due. Raises Unreachable."""
        if self._closed:
            return
        with self._subscription() as pubsub:
            message = pubsub.get_message(timeout=self._wait)
        if message is not None:
            self._receive(str(message["channel"]))

    def catch_up(self) -> None:
        """Act on every message that was sent before this call, after the own beat if it is due. Raises Unreachable."""
        with self._subscription() as pubsub:
            messages = list(pubsub.arrived())
        for message in messages:
            self._receive(str(message["channel"]))

    def silent_for(self, drone_id: str) -> float:
        """Seconds since this drone's last beat, but at most the time this supervisor has been able to receive one."""
        last = max(self._heard.get(drone_id, float("-inf")), self._deaf_until())
        return self._core.clock.monotonic() - last

    def close(self) -> None:
        self._closed = True

    @contextmanager
    def _subscription(self) -> Iterator[CheckedSubscription]:
        """The subscription, after the own beat if it is due."""
        if self._pubsub is None:
            self._pubsub = self._core.broker.subscribe(WAKE, patterns=[names.BEAT_PATTERN])
            # Messages may have been missed, and the server may have lost data, while there was no subscription.
            self._wake(everything=True)
        try:
            with self._core.broker.reaching():
                self._send_own()
                yield self._pubsub
        except Exception:
            self._drop()
            raise

    def _send_own(self) -> None:
        now = self._core.clock.monotonic()
        if now - self._sent_at >= self._every:
            self._sent_at = now
            self._core.broker.redis.publish(names.beat_channel(self._id), "")

    def _receive(self, channel: str) -> None:
        if channel == WAKE:
            self._wake(everything=False)
            return
        drone_id, now = names.drone_of(channel), self._core.clock.monotonic()
        if drone_id != self._id:
            self._heard[drone_id] = now
            return
        if self._steady_since is None or now - self._own_at > _MISSED * self._every:
            self._steady_since = now
        self._own_at = now

    def _deaf_until(self) -> float:
        """The time until which no beat could have been received: now, if the own beat does not come back."""
        now = self._core.clock.monotonic()
        if self._steady_since is None or now - self._own_at > _MISSED * self._every:
            return now
        return self._steady_since

    def _drop(self) -> None:
        self._steady_since = None
        if self._pubsub is not None:
            self._pubsub.close()
            self._pubsub = None
