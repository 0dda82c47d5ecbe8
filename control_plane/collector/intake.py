"""One transaction on one stream: entries are opened, checked against the stream's name, stored, and applied."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from hashlib import sha256

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from control_plane.collector import effects, hello
from control_plane.collector.held_events import Gaps
from control_plane.collector.intake_outcome import IntakeOutcome
from control_plane.collector.stream_entries import StreamEntry, has_later_hello
from control_plane.core import AuthenticatedDrone, Core
from control_plane.core.background.timings import Timings
from control_plane.core.origin import RequestOrigin, coming_from
from control_plane.db.drones import Drone, RawEvent
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run, Step
from control_plane.drones import key_rotation
from control_plane.drones.inbox import notify_drone
from control_plane.drones.reports import InvalidReport, Report, ReportSender, open_report, sender_of
from control_plane.money.spending.settlement import run_began_late
from shared.control import Resend
from shared.events import Event, GapStep, Hello
from shared.states import RunStatus
from shared.terminal import logs

_RAW_BYTES = 16_000
"""Stored of one entry that cannot be processed; of a larger one, this much and its size and digest."""
_RAW_OF_DRONE = 1000
_RAW_IN_ALL = 10_000
log = logs.get(__name__)


class Intake:
    """Stores entries of one drone's stream in the database. Created anew for each attempt of a transaction.

    `gaps` is a copy that becomes the reader's own after the commit.
    """

    def __init__(self, db: Session, core: Core, drone: Drone, gaps: Gaps, timings: Timings) -> None:
        self.db = db
        self.core = core
        self.drone = drone
        self.gaps = gaps
        self.outcome = IntakeOutcome()
        self._timings = timings
        self._now = core.clock.now()
        self._orders: dict[str, Order] = {}
        self._dispatches: dict[str, Dispatch] = {}
        self._runs: dict[str, Run] = {}
        """All three hold their rows until the commit: the session forgets a row that nothing refers to, and before each
        new reading it would write the previous event alone."""

    def store(self, entries: Iterable[StreamEntry]) -> None:
        """Store all entries, in order, and request the events missing between them."""
        reporting = AuthenticatedDrone(self.drone.id, self.drone.organization_id, self.drone.name)
        with coming_from(RequestOrigin(door="drone", reporting=reporting)):
            for entry in entries:
                try:
                    self._entry(entry)
                except InvalidReport as error:
                    self.keep_raw(entry, str(error))
            self._process_gaps()
            self._process_hello()

    def keep_raw(self, entry: StreamEntry, error: str) -> None:
        """Keep an entry that cannot be processed in its raw form, and acknowledge it.

        Large entries are cut, and beyond a number of entries they are only logged: drones may write anything.
        """
        self.outcome.acknowledge.append(entry.id)
        of_drone = select(func.count()).select_from(RawEvent).where(RawEvent.drone_id == self.drone.id)
        in_all = select(func.count()).select_from(RawEvent)
        if (self.db.scalar(of_drone) or 0) >= _RAW_OF_DRONE or (self.db.scalar(in_all) or 0) >= _RAW_IN_ALL:
            log.debug("a report was dropped: too many could not be processed", drone=self.drone.id, why=error)
            return
        self.db.add(
            RawEvent(
                organization_id=self.drone.organization_id,
                drone_id=self.drone.id,
                entry_id=entry.id,
                fields=_bounded(entry.fields),
                error=error,
                at=self._now,
            )
        )

    def _entry(self, entry: StreamEntry) -> None:
        if entry.too_large:
            raise InvalidReport(f"the entry is too large to read: {entry.too_large}")
        kind = entry.fields.get("t")
        if not entry.fields:
            # Deleted by an earlier owner between its read and its acknowledgment: already stored.
            self.outcome.acknowledge.append(entry.id)
        elif kind == "event":
            self._event(entry.id, self._open(Event, entry))
        elif kind == "hello":
            self._hello(entry.id, self._open(Hello, entry))
        else:
            raise InvalidReport(f"unknown entry kind {kind!r}")

    # --- events ----------------------------------------------------------------------

    def _event(self, entry_id: str, event: Event) -> None:
        """Store the event if it is the run's next; hold it back if earlier ones are missing."""
        dispatch = self._dispatch_of(event.run_id)
        if (dispatch.order_id, dispatch.generation) != (event.order_id, event.generation):
            raise InvalidReport(f"run {event.run_id} belongs to another order or generation")
        stored = self._stored(event.run_id)
        if event.seq > stored + 1:
            self.gaps.hold(entry_id, event)
            return
        self.outcome.acknowledge.append(entry_id)
        if event.seq == stored + 1:
            self._store(dispatch, event)
            self._release(dispatch)

    def _release(self, dispatch: Dispatch) -> None:
        """Store held events that are next now; duplicates are acknowledged with them."""
        while held := self.gaps.take_next(dispatch.id, self._stored(dispatch.id)):
            self.outcome.acknowledge.append(held.entry_id)
            if held.event.seq == self._stored(dispatch.id) + 1:
                self._store(dispatch, held.event)

    def _store(self, dispatch: Dispatch, event: Event) -> None:
        order = self._order(dispatch.order_id)
        run = self._run(dispatch.id) or self._begin_run(dispatch, order)
        late = order.run_id != run.id or run.status != RunStatus.RUNNING
        run.late = run.late or late
        run.last_seq = event.seq
        order.step_count += 1
        self.db.add(
            Step(
                organization_id=order.organization_id,
                order_id=order.id,
                run_id=run.id,
                seq=order.step_count,
                run_seq=event.seq,
                kind=event.body.kind,
                body=event.body.model_dump(mode="json"),
                at=self._now,
                drone_at=event.at,
                late=late,
            )
        )
        self.outcome.stepped.add(order.id)
        context = effects.EventContext(self.db, self.core, self.drone, dispatch, order, run, event, late)
        with logs.bound(order=order.id, run=run.id, drone=self.drone.id):
            effects.apply(context)
        if context.order_changed:
            self.outcome.changed.add(order.id)
        if context.also_changed is not None:
            self.outcome.stepped.add(context.also_changed)
        self.outcome.drone_notified = self.outcome.drone_notified or context.drone_notified

    def _begin_run(self, dispatch: Dispatch, order: Order) -> Run:
        """Create the run's row at its first event. A run that was given up before that begins as lost."""
        order.attempt += 1
        run = Run(
            id=dispatch.id,
            organization_id=order.organization_id,
            order_id=order.id,
            drone_id=dispatch.drone_id,
            agent_id=order.agent_id,
            task_id=order.task_id,
            generation=dispatch.generation,
            attempt=order.attempt,
            status=(RunStatus.RUNNING if dispatch.closed_at is None else RunStatus.LOST).value,
            started_at=self._now,
            late=False,
            last_seq=0,
            tool_calls=0,
            input_tokens=0,
            thinking_tokens=0,
            output_tokens=0,
            cached_tokens=0,
            cost_usd=0.0,
            duration_ms=0,
        )
        self.db.add(run)
        self.db.flush()
        self._runs[run.id] = run
        if run.status == RunStatus.LOST:
            run_began_late(self.db, run)
        return run

    # --- hellos ----------------------------------------------------------------------

    def _hello(self, entry_id: str, said: Hello) -> None:
        """Record the latest hello. Which runs it gives up is decided once the events around it are stored."""
        if self._is_outdated(entry_id):
            self.outcome.acknowledge.append(entry_id)
            return
        hello.note(self.core, self.drone, said)
        self.outcome.drone_notified = True
        if before := self.gaps.hold_hello(entry_id, said, self.core.clock.monotonic()):
            self.outcome.acknowledge.append(before)

    def _is_outdated(self, entry_id: str) -> bool:
        """Whether a later hello exists. Only the latest tells which runs are alive.

        An earlier one may have stayed in the stream while no collector ran, or may be read twice: runs that began
        after it would look as if they had died before it.
        """
        return has_later_hello(self.core.broker, self.drone.id, entry_id)

    def _process_hello(self) -> None:
        """Give up the runs that the drone no longer has; if Redis lost a run's last steps, once they have arrived."""
        held, now = self.gaps.hello, self.core.clock.monotonic()
        if held is None:
            return
        behind: dict[str, int] = {}
        if not self._is_outdated(held.entry_id):
            patient = now - held.since < self._timings.hello_wait
            behind = hello.lose_missing_runs(self.db, self.core, self.drone, held.said, self.outcome, patient=patient)
        for run_id, stored in behind.items():
            self._request_resend(run_id, stored, now)
        if not behind:
            self.gaps.hello = None
            self.outcome.acknowledge.append(held.entry_id)

    # --- gaps ------------------------------------------------------------------------

    def _process_gaps(self) -> None:
        """Request missing events from the drone; close a gap that it did not fill in time."""
        now = self.core.clock.monotonic()
        for run_id in self.gaps.runs():
            stored = self._stored(run_id)
            self.gaps.note(run_id, stored, now)
            if self.gaps.waited(run_id, now) >= self._timings.gap_after:
                self._close_gap(run_id, stored)
            else:
                self._request_resend(run_id, stored, now)

    def _request_resend(self, run_id: str, stored: int, now: float) -> None:
        """Ask the drone to send a run's events again from the first missing one; rate-limited per run."""
        if self.gaps.may_ask(run_id, now, self._timings.resend_every):
            self.gaps.asked(run_id, now)
            notify_drone(self.db, self.core, self.drone.id, Resend(run_id=run_id, from_seq=stored + 1), run_id)
            self.outcome.drone_notified = True

    def _close_gap(self, run_id: str, stored: int) -> None:
        dispatch = self._dispatch_of(run_id)
        first = self.gaps.first(run_id)
        missing = first.seq - stored - 1
        minutes = round(self._timings.gap_after / 60)
        body = GapStep(missing=missing, why=f"the drone did not deliver them within {minutes} minutes")
        self._store(dispatch, first.model_copy(update={"seq": stored + 1, "at": self._now, "body": body}))
        self._runs[run_id].last_seq = first.seq - 1
        self._release(dispatch)

    # --- reading ---------------------------------------------------------------------

    def _open(self, kind: type[Report], entry: StreamEntry) -> Report:
        envelope = entry.fields.get("e", "")
        known, *following = self._sender.public_keys
        try:
            return open_report(kind, envelope, replace(self._sender, public_keys=(known,)), self._keys)
        except InvalidReport:
            if not following:
                raise
            report = open_report(kind, envelope, self._sender, self._keys)
        # For the next entry, the keys are read again: they are replaced now, or were revoked meanwhile.
        del self._sender
        # Whatever the drone sent under the old key came before this in its stream.
        self.outcome.done_messages = key_rotation.confirm(self.db, self.core, self.drone)
        self.outcome.user_with_new_keys = key_rotation.user_of(self.drone)
        self.outcome.drone_notified = True
        return report

    @cached_property
    def _sender(self) -> ReportSender:
        return sender_of(self.db, self.drone)

    @cached_property
    def _keys(self) -> dict[str, bytes]:
        return self.core.vault.box_keys(self.db).private_keys()

    def _dispatch_of(self, run_id: str) -> Dispatch:
        """The run's dispatch, as it is once its order is locked."""
        if run_id not in self._dispatches:
            order_id = self.db.get_one(Dispatch, run_id).order_id
            self._order(order_id)
            self._dispatches[run_id] = self.db.get_one(Dispatch, run_id, populate_existing=True)
        return self._dispatches[run_id]

    def _order(self, order_id: str) -> Order:
        """The order, locked until the commit: a concurrent cancel waits, and then sees what this transaction wrote."""
        if order_id not in self._orders:
            self.db.flush()
            self._orders[order_id] = self.db.get_one(Order, order_id, with_for_update=True, populate_existing=True)
        return self._orders[order_id]

    def _stored(self, run_id: str) -> int:
        run = self._run(run_id)
        return run.last_seq if run is not None else 0

    def _run(self, run_id: str) -> Run | None:
        """The run, as it is once its order is locked; None before its first event."""
        if run_id not in self._runs:
            self._dispatch_of(run_id)
            found = self.db.get(Run, run_id)
            if found is None:
                return None
            self._runs[run_id] = found
        return self._runs[run_id]


def _bounded(fields: dict[str, str]) -> dict[str, str]:
    """The fields, or the beginning of their text with its true size and digest."""
    text = "".join(part for pair in fields.items() for part in pair)
    content = text.encode(errors="replace")
    if len(content) <= _RAW_BYTES:
        return fields
    cut = content[:_RAW_BYTES].decode(errors="ignore")
    return {"cut": cut, "bytes": str(len(content)), "sha256": sha256(content).hexdigest()}
