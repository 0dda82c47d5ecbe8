"""A control plane without HTTP on a real broker and a database, whose components a test runs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
import redis
import structlog
from sqlalchemy import select, update

from control_plane.background.timings import Timings
from control_plane.broker.broker import Broker
from control_plane.collector import Collector
from control_plane.core import Caller, Core
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order
from control_plane.declarations.projects import ProjectRequest
from control_plane.declarations.providers import ProviderRequest
from control_plane.documents.orders import OrderDocument, SubmitRequest
from control_plane.lookups.organizations import system_caller
from control_plane.operations import projects, providers
from control_plane.operations.orders import reading
from control_plane.supervisor import Supervisor
from shared.events import ABILITIES
from shared.names import new_id
from shared.reasons import OrderFacts
from tests.support import wait_until
from tests.support.quiet_logs import quiet_logs
from tests.support.stand_in import DroneStandIn, join

if TYPE_CHECKING:
    from tests.support.database import CoreFactory

P = TypeVar("P", Collector, Supervisor)

QUICK = Timings(
    poll=0.2,
    sweep=0.3,
    own_beat=0.25,
    lost_after=60.0,
    unclaimed_after=0.5,
    beat_age=0.1,
    gather=0.02,
    rebalance_after=0.3,
    owner_ttl=2.0,
    users_every=0.3,
    quota_every=0.3,
    quota_pause=0.5,
    tail_after=0.3,
    resend_every=0.5,
    gap_after=600.0,
    pauses=(0.1, 0.2, 0.4),
    stop_within=0.05,
)
"""The production timings, shortened; silence keeps its 15 s and 60 s, unless a test shortens it."""


@dataclass
class Plane:
    """A Core with a real broker and a database, an admin, a project, and the components started on top."""

    core: Core
    admin: Caller
    started: list[Collector | Supervisor] = field(default_factory=list)
    drones: list[DroneStandIn] = field(default_factory=list)

    def collector(self, **timings: float) -> Collector:
        """A running collector, which hears every beat from now on if the broker is there."""
        before = self._listening()
        made = self._start(Collector(self.core, new_id(), replace(QUICK, **timings)))
        if before is not None:
            wait_until(lambda: (self._listening() or 0) > before)
        return made

    def supervisor(self, **timings: float) -> Supervisor:
        """A running supervisor."""
        return self._start(Supervisor(self.core, new_id(), replace(QUICK, **timings)))

    def drone(self, name: str = "oka", *, online: bool = True, **fields: Any) -> DroneStandIn:
        """A registered drone; `online` writes its first beat directly, because no collector may be running."""
        made = join(self.core, self.admin, name, **fields)
        self.drones.append(made)
        if online:
            beat = {"abilities": list(ABILITIES)}
            self.edit(Drone, made.id, last_seen_at=self.core.clock.now(), beat=beat)
        return made

    def submit(self, prompt: str = "do it", **fields: Any) -> str:
        """Submit an order; returns its id."""
        request = SubmitRequest.model_validate({"prompt": prompt, "project": "app", **fields})
        return reading.submit(self.core, self.admin, request).id

    def order(self, order_id: str) -> OrderDocument:
        return reading.show_order(self.core, self.admin, order_id)

    def status(self, order_id: str) -> str:
        """The status alone, which costs a tenth of the whole document: for waiting."""
        return str(self.rows(Order, Order.id == order_id)[0].status)

    def facts(self, order_id: str) -> OrderFacts:
        """The facts behind the order's status."""
        facts: OrderFacts = self.rows(Order, Order.id == order_id)[0].facts
        return facts

    def edit(self, model: type[Any], row_id: str, **values: Any) -> None:
        """Set columns of one row directly."""
        with self.core.database.write() as db:
            db.execute(update(model).where(model.id == row_id).values(**values))

    def rows(self, model: type[Any], *where: Any) -> list[Any]:
        with self.core.database.read() as db:
            return list(db.scalars(select(model).where(*where)))

    def key(self, drone: DroneStandIn, run_id: str) -> str:
        """The value of a run's key in the broker."""
        return self.core.broker.run_keys(drone.id, [run_id])[run_id]

    def dispatch(self, order_id: str) -> Dispatch:
        """The order's latest dispatch."""
        return max(self.rows(Dispatch, Dispatch.order_id == order_id), key=lambda each: each.generation)

    def stop(self, part: Collector | Supervisor) -> None:
        self.started.remove(part)
        assert part.stop() == []

    def close(self) -> None:
        # In parallel: each waits for threads that check only a few times a second whether to stop.
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda part: part.stop(), self.started))
        for drone in self.drones:
            drone.close()

    def _listening(self) -> int | None:
        """How many connections receive messages; None without a broker."""
        try:
            return len(self.core.broker.redis.client_list(_type="pubsub"))
        except redis.exceptions.RedisError:
            return None

    def _start(self, part: P) -> P:
        self.started.append(part)
        part.start()
        return part


@pytest.fixture
def plane(core_factory: CoreFactory, sqlite_url: str, broker: Broker) -> Iterator[Plane]:
    """A control plane on SQLite and Valkey with a project `app`; none of its components runs yet."""
    yield from plane_on(core_factory(sqlite_url, broker=broker))


@pytest.fixture
def any_plane(core_factory: CoreFactory, database_url: str, broker: Broker) -> Iterator[Plane]:
    """Like `plane`, once on each kind of database."""
    yield from plane_on(core_factory(database_url, broker=broker))


def plane_on(core: Core) -> Iterator[Plane]:
    """Yield a control plane on this Core, and close it afterwards."""
    # Tracebacks as plain text: rendering one with all local variables in colour takes seconds.
    structlog.configure([structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()])
    admin = system_caller(core)
    providers.add(core, admin, ProviderRequest(name="scripted", model="openai/scripted", api_key="sk-secret"))
    projects.add(core, admin, ProjectRequest(slug="app", git_url="https://git.example/app.git"))
    made = Plane(core, admin)
    yield made
    made.close()
    quiet_logs()
