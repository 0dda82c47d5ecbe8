"""One stream's reader: a batch at a time into the database, then out of Redis; entries that fail 5 times stay raw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlalchemy.orm import Session

from control_plane.collector.held_events import Gaps
from control_plane.collector.intake import Intake
from control_plane.collector.intake_outcome import IntakeOutcome
from control_plane.collector.stream_entries import DroneStream, StreamEntry
from control_plane.collector.stream_leases import lease_of
from control_plane.core import Core
from control_plane.core.background.leases import Owners
from control_plane.core.background.timings import Timings
from control_plane.db.drones import Drone
from control_plane.db.failures import concerns_all
from control_plane.drones.key_rotation import end_old_password
from control_plane.orders.lost import announce
from shared.errors import FleetFault, Precondition
from shared.terminal import logs

log = logs.get(__name__)

_BATCH = 100
_SMALLEST_BATCH = 5
_LONG = 1.0
"""Seconds. A batch locks its runs' rows until it is stored, and heartbeats wait for those rows. On an overloaded
machine, a hundred events would take so long that every drone seemed silent, so the next batch is half as large."""
_TRIES = 5
_PAUSE = 0.2
_NOT_THE_ENTRY = (FleetFault, Precondition)
"""Redis or the database is unavailable, or a key is missing here: no entry is at fault, and none is given up."""


class StreamLeaseLost(Exception):
    """Another collector owns the stream now."""


class Reader:
    """Stores one drone's stream. Used by one thread; created anew when this process takes over the stream."""

    def __init__(self, core: Core, owners: Owners, drone_id: str, timings: Timings) -> None:
        self._core = core
        self._owners = owners
        self._drone_id = drone_id
        self._timings = timings
        self._entries = DroneStream(core.broker, drone_id)
        self._gaps = Gaps()
        self._failures: Counter[str] = Counter()
        self._paused_until = 0.0
        self._batch = _BATCH

    @property
    def waits(self) -> bool:
        """Whether there is work here even without new entries."""
        return bool(self._gaps) or bool(self._failures)

    def reread(self) -> None:
        """Let the next batch begin with entries that were delivered and not stored.

        The stream's previous owner may have read them as it lost its lease, or Redis' answer may have been lost.
        Events that wait for earlier ones are such entries too, so nothing is read again while there are any.
        """
        if not self._gaps:
            self._entries.reread()

    def take(self) -> bool:
        """Store one batch; true if there may be more. Raises StreamLeaseLost, Unreachable."""
        if self._core.clock.monotonic() < self._paused_until:
            return False
        with logs.bound(drone=self._drone_id):
            return self._taken()

    def _taken(self) -> bool:
        try:
            entries = self._entries.read(self._batch)
            if not entries and not self._gaps:
                return False
            began = self._core.clock.monotonic()
            taken = self._take_all(entries)
            self._batch = next_batch(self._batch, self._core.clock.monotonic() - began)
            return taken and bool(entries)
        except _NOT_THE_ENTRY:
            # Entries that are not acknowledged are read again.
            self._entries.reread()
            raise

    def _take_all(self, entries: Sequence[StreamEntry]) -> bool:
        """Store all in one transaction; if that fails, each entry in its own, up to the first that fails."""
        try:
            self._commit(entries)
        except (*_NOT_THE_ENTRY, StreamLeaseLost):
            raise
        except Exception as error:  # noqa: BLE001 - untrusted content; one entry must not block a stream forever
            if len(entries) > 1:
                return all(self._take_all([entry]) for entry in entries)
            return self._failed(entries, error)
        for entry in entries:
            self._failures.pop(entry.id, None)
        return True

    def _commit(self, entries: Sequence[StreamEntry]) -> None:
        intake = self._core.database.transact(lambda db: self._work(db, entries))
        # Everything is stored now. If the following work is lost, it is repeated, or others notice it.
        self._gaps = intake.gaps
        self._finish(intake.outcome)

    def _work(self, db: Session, entries: Sequence[StreamEntry]) -> Intake:
        if not self._owners.still_holds(db, lease_of(self._drone_id)):
            raise StreamLeaseLost
        drone = db.get_one(Drone, self._drone_id)
        intake = Intake(db, self._core, drone, self._gaps.copied(), self._timings)
        worn_out = [entry for entry in entries if self._failures[entry.id] >= _TRIES]
        for entry in worn_out:
            intake.keep_raw(entry, f"failed {_TRIES} times")
        intake.store(entry for entry in entries if entry not in worn_out)
        return intake

    def _finish(self, outcome: IntakeOutcome) -> None:
        broker = self._core.broker
        self._entries.acknowledge(outcome.acknowledge)
        broker.stepped(outcome.stepped - outcome.changed)
        if outcome.user_with_new_keys is not None:
            log.info("the drone uses its new keys; the old ones are no longer valid", drone=self._drone_id)
            end_old_password(self._core, self._drone_id, outcome.user_with_new_keys, outcome.done_messages)
        for loss in outcome.losses:
            broker.revoke_run(loss.drone_id, loss.run_id, loss.generation)
        announce(self._core, outcome.changed, outcome.ended)
        if outcome.drone_notified:
            broker.wake()

    def _failed(self, entries: Sequence[StreamEntry], error: Exception) -> bool:
        """Count a failure against its entry, if it is its own, and pause the stream briefly before the next attempt."""
        for entry in entries:
            # Counted as zero, the entry is tried again as well.
            self._failures[entry.id] += not concerns_all(error)
            log.error("an event cannot be processed", drone=self._drone_id, entry=entry.id, exc_info=error)
        if not entries:
            log.error("a gap cannot be closed", drone=self._drone_id, exc_info=error)
        self._paused_until = self._core.clock.monotonic() + _PAUSE
        self._entries.reread()
        return False


def next_batch(size: int, took: float) -> int:
    """The next batch size, after a batch of `size` entries took `took` seconds."""
    if took > _LONG:
        return max(_SMALLEST_BATCH, size // 2)
    return min(_BATCH, size * 2) if took < _LONG / 4 else size
