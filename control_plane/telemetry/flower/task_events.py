"""Flower's tasks, kept in line with the database.

Flower knows only the events that it received. It misses those that were sent while it was down or restarting, and a
drone that fell silent sends none. This process therefore reads from the database how runs are, and adds the missing
events to Flower's state itself: nothing is published, so nothing is counted twice elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from flower.events import Events
from sqlalchemy.exc import SQLAlchemyError
from tornado.ioloop import PeriodicCallback

from control_plane.telemetry.flower.events import ON_BEHALF
from control_plane.telemetry.flower.recorded_tasks import FAILURE, PENDING, RETRY, REVOKED, SUCCESS, RecordedTask
from shared import names
from shared.clock import Clock
from shared.errors import FleetError
from shared.terminal import logs

log = logs.get(__name__)

EVERY_SECONDS = 5.0
GRACE_SECONDS = 3.0
"""An event of the drone itself is better than ours: it has this long to arrive."""
LOOK_BACK = timedelta(days=1)
"""Runs that ended earlier are not added when Flower starts."""
_OVERLAP = timedelta(minutes=10)
"""Later reads repeat what ended in this time: commits may come late, clocks differ, and a run that was to be followed
by another is the last one if its order is canceled first. What happens later is shown once Flower is restarted."""
RECEIVED = "RECEIVED"
SENDER = "control-plane"
_KIND_OF = {SUCCESS: "succeeded", FAILURE: "failed", RETRY: "retried", REVOKED: "revoked"}
_Event = dict[str, Any]


class TaskEvents(Events):  # type: ignore[misc]  # Flower has no types
    """Flower's events, without those that come late, and with those that are missing."""

    def __init__(self, app: Any, clock: Clock, *, limit: int, **options: Any) -> None:
        super().__init__(app, max_tasks_in_memory=limit, **options)
        self._clock = clock
        self._limit = limit
        self._settled: dict[str, str] = {}
        """Tasks whose end is that in the database, with their state."""
        self._organizations: dict[str, str] = {}
        self._since: datetime | None = None

    def follow(self, read: Callable[[datetime], list[RecordedTask]]) -> None:
        """Begin to follow the database; `read` is called in a thread, every few seconds."""

        async def catch_up() -> None:
            now = self._clock.now()
            try:
                since = self._since or now - LOOK_BACK
                tasks = await self.io_loop.run_in_executor(None, read, since)
            except (FleetError, SQLAlchemyError) as error:
                log.warning("Flower cannot read how runs ended; retrying", why=str(error))
                return
            self.settle(tasks)
            self._since = now - _OVERLAP

        self.io_loop.add_callback(catch_up)
        PeriodicCallback(catch_up, EVERY_SECONDS * 1000).start()

    def organization_of(self, run_id: str) -> str:
        """The organization of the run's order; empty while it is unknown."""
        return self._organizations.get(run_id, "")

    def on_event(self, event: _Event) -> None:
        """Take an event of a worker, in the thread that Flower's state belongs to."""
        self.io_loop.add_callback(self.take, event)

    def take(self, event: _Event) -> None:
        """Apply an event, unless the database has already said how its task ended."""
        if event.get("uuid") in self._settled:
            return
        if event.get(ON_BEHALF):
            self._add(event)
        else:
            self.state.event(event)

    def settle(self, tasks: Iterable[RecordedTask]) -> None:
        """Add the events that Flower lacks, oldest task first: its list keeps the newest."""
        now = self._clock.now().timestamp()
        for task in sorted(tasks, key=lambda task: task.sent_at):
            _remember(self._organizations, task.run_id, task.organization, self._limit)
            changed_at = task.ended_at or task.started_at or task.sent_at
            if self._settled.get(task.run_id) == task.state or now - changed_at < GRACE_SECONDS:
                continue
            self._bring(task)
            if task.ended:
                _remember(self._settled, task.run_id, task.state, self._limit)

    def _bring(self, task: RecordedTask) -> None:
        known = self.state.tasks.data.get(task.run_id)
        for event in missing_events(task, known):
            self._add(event)
        shown = self.state.tasks.data[task.run_id]
        if task.ended and shown.state != task.state:
            # Celery orders events itself, and lets no cancellation replace a failure that it saw.
            shown.state = task.state
            self.state.search_engine.upsert(shown)

    def _add(self, event: _Event) -> None:
        """Apply an event that its worker did not send: Flower would take it for a sign of life."""
        known = self.state.workers.data.get(event["hostname"])
        heartbeats = list(known.heartbeats) if known is not None else []
        self.state.event(event)
        worker = self.state.workers.data.get(event["hostname"])
        if worker is not None:
            worker.heartbeats[:] = heartbeats


def missing_events(task: RecordedTask, known: Any) -> list[_Event]:
    """The events that bring a task from what Flower knows of it, None for an unknown task, to its own state.

    Of a run that began before Flower was started, it may know the end alone, which tells no order.
    """
    found, shown = [], known.state if known is not None else None
    if known is None or not known.name:
        # Celery names the sender of a task here, which is no worker.
        found.append({**_event(task, "sent", task.sent_at), "hostname": SENDER})
    if task.started_at is not None and shown in {None, PENDING}:
        found.append(_event(task, "received", task.started_at))
    if task.started_at is not None and shown in {None, PENDING, RECEIVED}:
        found.append(_event(task, "started", task.started_at))
    if task.ended and shown != task.state:
        found.append(_last_event(task))
    return found


def _last_event(task: RecordedTask) -> _Event:
    ended_at = task.ended_at or task.sent_at
    event = _event(task, _KIND_OF[task.state], ended_at)
    match task.state:
        case "SUCCESS":
            return {**event, "result": repr(task.exit_status), "runtime": ended_at - (task.started_at or ended_at)}
        case "REVOKED":
            return {**event, "terminated": task.started_at is not None, "signum": None, "expired": False}
        case _:
            why = f"run {task.run_id} of order {task.order_id} failed: {task.exit_status or 'it did not begin'}"
            return {**event, "exception": why, "traceback": ""}


def _event(task: RecordedTask, kind: str, at: float) -> _Event:
    """An event as the worker would have sent it, and as if it had been received then."""
    return {
        "type": f"task-{kind}",
        "uuid": task.run_id,
        "hostname": task.worker,
        "timestamp": at,
        "local_received": at,
        "clock": 0,
        "name": names.RUN_TASK,
        "args": names.shown_arguments(task.order_id, task.generation),
        "kwargs": "{}",
        "retries": 0,
    }


def _remember(known: dict[str, Any], run_id: str, value: Any, limit: int) -> None:
    """Keep a value of the newest runs: twice as many as Flower shows."""
    known[run_id] = value
    if len(known) > 2 * limit:
        del known[next(iter(known))]
