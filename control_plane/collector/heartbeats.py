"""Heartbeats, written together: live drones, activity of each run, messages acted on, missing events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.collector.listener import Listener
from control_plane.collector.stream_entries import with_work
from control_plane.collector.stream_leases import Streams
from control_plane.core import Core
from control_plane.core.background.timings import Timings
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch
from control_plane.db.runs import Run
from control_plane.drones.condition import Load, status_of
from control_plane.drones.inbox import acted_on, forget, notify_drone, pending
from control_plane.drones.reports import InvalidReport, RefusalLog, open_report, sender_of
from shared.control import Confirm, Rename, Resend
from shared.errors import FleetFault, Precondition
from shared.events import Beat, RunBeat
from shared.states import RunStatus

_STALE = 3.0
"""Seconds after which a beat that could not be written no longer counts as a sign of life."""

_RUNS_AT_ONCE = 5000
"""Runs that one query reads: databases limit the parameters of a statement, and a beat may name 1,000 runs."""
_NOT_THE_BEAT = (FleetFault, Precondition)
"""The database is unavailable, or a key is missing here: no beat is at fault."""


@dataclass
class _Written:
    """The work outside the database after the commit."""

    forget: dict[str, list[str]] = field(default_factory=dict)
    wake: bool = False
    revoke: list[tuple[str, str, int]] = field(default_factory=list)
    """Drone, run and generation."""


class Beats:
    """Writes the latest beat of each drone whose stream this process owns; at most one write for all of them."""

    def __init__(self, core: Core, streams: Streams, listener: Listener, timings: Timings) -> None:
        self._core = core
        self._streams = streams
        self._listener = listener
        self._timings = timings
        self._refusals = RefusalLog(core.clock)
        self._behind: dict[str, tuple[int, float]] = {}
        """Runs for which a beat named later events than are stored: the last stored seq, and since when."""

    def take(self) -> None:
        """Write the beats that arrived since the last round."""
        owned = self._streams.owned
        sealed = {drone: text for drone, text in self._listener.beats(_STALE).items() if drone in owned}
        if not sealed:
            return
        for written in self._store(self._opened(sealed)):
            self._finish(written)

    def _store(self, beats: Mapping[str, Beat]) -> Iterator[_Written]:
        """Write all beats in one transaction; if that fails, each in its own, so that one silences no other drone."""
        try:
            yield self._core.database.transact(lambda db: self._write(db, beats))
        except _NOT_THE_BEAT:
            raise
        except Exception as error:  # noqa: BLE001 - untrusted content: one beat must not keep the others out
            if len(beats) > 1:
                for drone_id, beat in beats.items():
                    yield from self._store({drone_id: beat})
                return
            for drone_id in beats:
                self._refusals.note("a heartbeat could not be stored", drone_id, error)

    def _finish(self, written: _Written) -> None:
        """Do what belongs to stored beats outside the database."""
        for gone in written.revoke:
            # Their keys were revoked when the runs were given up. But if the broker was emptied since, a drone that was
            # frozen all the time finds no revoked key.
            self._core.broker.revoke_run(*gone)
        for drone_id, message_ids in written.forget.items():
            forget(self._core, drone_id, message_ids)
        if written.wake:
            self._core.broker.wake()

    def _opened(self, sealed: Mapping[str, str]) -> dict[str, Beat]:
        """The valid beats, by the drone through whose channel they came."""
        found = {}
        with self._core.database.read() as db:
            keys = self._core.vault.box_keys(db).private_keys()
            for drone in db.scalars(select(Drone).where(Drone.id.in_(sealed), Drone.removed_at.is_(None))):
                try:
                    found[drone.id] = open_report(Beat, sealed[drone.id], sender_of(db, drone), keys)
                except InvalidReport as error:
                    self._refusals.note("a heartbeat was refused", drone.id, error)
        return found

    def _write(self, db: Session, beats: Mapping[str, Beat]) -> _Written:
        written = _Written()
        drones = {each.id: each for each in db.scalars(select(Drone).where(Drone.id.in_(beats)))}
        kept = _known_runs(db, beats)
        # The beats were opened before: since then, a drone may have been removed, and its keys revoked.
        present = [
            (drone, beats[drone.id])
            for drone in drones.values()
            if drone.removed_at is None and drone.keys_revoked_at is None
        ]
        for drone, beat in present:
            written.wake = self._tell_name(db, drone, beat) or written.wake
            for run in beat.runs:
                written.wake = self._note_run(db, drone, run) or written.wake
                written.revoke += _given_up(db, drone.id, run)
            if ids := acted_on(db, self._core, drone.id, beat.done):
                written.forget[drone.id] = ids
        # Last, and after all queries: each of those would first send the changes so far, one drone at a time.
        for drone, beat in present:
            written.wake = self._note_alive(drone, beat) or written.wake
        del kept
        return written

    def _note_alive(self, drone: Drone, beat: Beat) -> bool:
        """Write the beat to the drone's row; true if waiting orders may go to it now."""
        now, nothing = self._core.clock.now(), Load()
        before = status_of(drone, nothing, now)
        drone.last_seen_at = now
        drone.stopped_at = now if beat.stopping else None
        drone.boot_id = beat.boot_id
        drone.version = beat.version
        drone.sandbox = beat.sandbox
        drone.concurrency = beat.concurrency
        drone.beat = beat.model_dump(mode="json")
        return status_of(drone, nothing, now) is not before

    def _tell_name(self, db: Session, drone: Drone, beat: Beat) -> bool:
        """Tell a drone that was renamed; true if a message for it was written.

        One that is leaving may know already: its next boot will show.
        """
        if beat.leaving or beat.stopping or beat.name == drone.name or pending(db, drone.id, None, "rename"):
            return False
        notify_drone(db, self._core, drone.id, Rename(name=drone.name))
        return True

    def _note_run(self, db: Session, drone: Drone, beat: RunBeat) -> bool:
        """Write the run's activity; true if a message for the drone was written."""
        dispatch = db.get(Dispatch, beat.run_id)
        if dispatch is None:
            return False
        now = self._core.clock.now()
        dispatch.claimed_at = dispatch.claimed_at or now
        run = db.get(Run, beat.run_id)
        if run is not None:
            run.beat_at = now
            _note_doing(run, beat, now)
        stored = run.last_seq if run is not None else 0
        if stored < beat.last_seq:
            return self._ask_for_tail(db, drone, beat, stored)
        self._behind.pop(beat.run_id, None)
        if beat.ended and not pending(db, drone.id, beat.run_id, "confirm"):
            # Confirmed before, but the drone still waits: it never received the confirmation.
            notify_drone(db, self._core, drone.id, Confirm(run_id=beat.run_id, last_seq=stored), beat.run_id)
            return True
        return False

    def _ask_for_tail(self, db: Session, drone: Drone, beat: RunBeat, stored: int) -> bool:
        """Request events missing at the end of a run if they do not arrive; true if a message was written.

        No later event reveals them, as Redis was emptied after the last one.
        """
        now = self._core.clock.monotonic()
        known, since = self._behind.get(beat.run_id, (-1, now))
        if known != stored:
            self._behind[beat.run_id] = (stored, now)
            return False
        if now - since < self._timings.tail_after or pending(db, drone.id, beat.run_id, "resend"):
            return False
        self._behind[beat.run_id] = (stored, now)
        if with_work(self._core.broker, [drone.id]):
            # They are there, and this side is late: copies would only delay it further.
            return False
        notify_drone(db, self._core, drone.id, Resend(run_id=beat.run_id, from_seq=stored + 1), beat.run_id)
        return True


def _known_runs(db: Session, beats: Mapping[str, Beat]) -> list[Dispatch | Run]:
    """The rows of all runs that the beats name. While the result is kept, `db.get` finds them without a query."""
    named = [run.run_id for beat in beats.values() for run in beat.runs]
    found: list[Dispatch | Run] = []
    for start in range(0, len(named), _RUNS_AT_ONCE):
        part = named[start : start + _RUNS_AT_ONCE]
        found += db.scalars(select(Dispatch).where(Dispatch.id.in_(part)))
        found += db.scalars(select(Run).where(Run.id.in_(part)))
    return found


def _note_doing(run: Run, beat: RunBeat, now: datetime) -> None:
    """Write the run's activity and its last progress, by this side's clock: the drone's may differ."""
    if run.status != RunStatus.RUNNING:
        run.doing, run.waits_for = "", ""
        return
    run.doing_since = now - timedelta(seconds=beat.doing_seconds)
    run.doing, run.waits_for = beat.doing, beat.waits_for
    run.progress_at = now - timedelta(seconds=beat.quiet_seconds)


def _given_up(db: Session, drone_id: str, beat: RunBeat) -> list[tuple[str, str, int]]:
    """The run, if it is still running although it was given up, or although the database does not know it.

    Each dispatch is stored before its message is sent: an unknown run began after the backup from which the database
    was restored. Its order is dispatched again, so it must not continue.
    """
    known, run = db.get(Dispatch, beat.run_id), db.get(Run, beat.run_id)
    if beat.ended or (known is not None and (run is None or run.status != RunStatus.LOST)):
        return []
    return [(drone_id, beat.run_id, known.generation if known is not None else beat.generation)]
