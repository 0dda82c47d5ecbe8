"""One answer to Prometheus: all figures, read within a time limit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.installation import Organization
from control_plane.telemetry.metrics.drones import (
    ListedDrone,
    drone_metrics,
    lease_metrics,
    listed_drones,
    pool_metrics,
    queue_metrics,
)
from control_plane.telemetry.metrics.families import gauge
from control_plane.telemetry.metrics.money import budget_metrics, cost_metrics
from control_plane.telemetry.metrics.orders import order_metrics, run_metrics, step_metrics, trace_metrics
from shared.errors import FleetError
from shared.terminal import logs

log = logs.get(__name__)
DATABASE_SECONDS = 3.0
HISTORY_SECONDS = 5.0
BROKER_SECONDS = 2.0
"""In all not more than the 10 s that Prometheus waits by default."""


class Scrapes:
    """Answers requests, one after the other; a request does not wait for what already kept an earlier one waiting."""

    def __init__(self, core: Core, *, database_s: float = DATABASE_SECONDS) -> None:
        self._core = core
        self._lock = threading.Lock()
        self._database = _TimedReading("database", self._read_now, database_s)
        self._history = _TimedReading("history", self._read_history, HISTORY_SECONDS)
        self._broker = _TimedReading("broker", self._read_broker, BROKER_SECONDS)
        self._drones: Sequence[ListedDrone] = ()
        """As last read from the database: the queues are still counted while it does not answer."""

    def answer(self) -> bytes:
        """All figures in Prometheus' text format; those of a part that does not answer are left out."""
        registry = CollectorRegistry(auto_describe=False)
        with self._lock:
            registry.register(_Collected(self._metrics()))
        return generate_latest(registry)

    def _metrics(self) -> list[Metric]:
        found = {"database": self._database.read()}
        found["history"] = None if found["database"] is None else self._history.read()
        # After the database, which says whose queues there are.
        found["broker"] = self._broker.read()
        up = [((name,), metrics is not None) for name, metrics in found.items()]
        answers = gauge("dronefleet_up", "1: this part answered in time.", ("part",), up)
        return [answers, *(metric for metrics in found.values() for metric in metrics or ())]

    def _read_now(self) -> list[Metric]:
        """What stays small however many orders have ended: it comes from small tables and from indexes."""
        now = self._core.clock.now()
        with self._view() as (db, names):
            drones = listed_drones(db, names)
            self._drones = listed = [each for each, _ in drones]
            return [
                *order_metrics(db, names, now),
                *budget_metrics(db, names, now),
                *drone_metrics(db, names, drones, now),
                *lease_metrics(db, listed, now),
                *trace_metrics(db, names),
                *pool_metrics(db, names, now),
            ]

    def _read_history(self) -> list[Metric]:
        """What takes a pass over all orders, runs and payments."""
        with self._view() as (db, names):
            return [*run_metrics(db, names), *step_metrics(db, names), *cost_metrics(db, names)]

    def _read_broker(self) -> list[Metric]:
        return list(queue_metrics(self._core.broker, self._drones))

    @contextmanager
    def _view(self) -> Iterator[tuple[Session, Mapping[str, str]]]:
        """One view of the database for all statements, and the names of the organizations in it by id."""
        with self._core.database.read() as db:
            if not self._core.database.is_sqlite:
                db.connection(execution_options={"isolation_level": "REPEATABLE READ"})
            yield db, {id_: name for id_, name in db.execute(select(Organization.id, Organization.name))}


class _Collected(Collector):
    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


class _TimedReading:
    """Figures that are read in a thread of their own, so that a server that hangs cannot hold up the answer."""

    def __init__(self, name: str, read: Callable[[], list[Metric]], seconds: float) -> None:
        self.name = name
        self._read = read
        self._seconds = seconds
        self._thread: threading.Thread | None = None
        self._answers = True

    def read(self) -> list[Metric] | None:
        """The figures; None if there is no answer in time. Raises what is no fault of the server."""
        if self._thread is not None and self._thread.is_alive():
            return None
        result = _ReadFigures()
        # A daemon: a thread that hangs must not keep the process from ending.
        self._thread = threading.Thread(
            target=result.fill, args=(self._read,), name=f"{self.name} metrics", daemon=True
        )
        self._thread.start()
        self._thread.join(self._seconds)
        self._note(result)
        if result.error is not None and not isinstance(result.error, FleetError):
            raise result.error
        return result.metrics

    def _note(self, result: _ReadFigures) -> None:
        """Log only changes: Prometheus asks several times a minute."""
        if result.metrics is None and self._answers:
            error = result.error
            why = error.what if isinstance(error, FleetError) else str(error or f"no answer within {self._seconds} s")
            log.warning("metrics are incomplete", missing=self.name, why=why)
        self._answers = result.metrics is not None


class _ReadFigures:
    def __init__(self) -> None:
        self.metrics: list[Metric] | None = None
        self.error: Exception | None = None

    def fill(self, read: Callable[[], list[Metric]]) -> None:
        try:
            self.metrics = read()
        except Exception as error:  # noqa: BLE001 - raised again in the thread of the request
            self.error = error
