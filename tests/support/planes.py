"""A control plane without HTTP on a real broker and a database, whose rounds a test runs.

`plane` stands still until the test lets a round happen: nothing runs beside it, and its clock is set by hand.
`live_plane` runs in threads by the machine's clock, for drones that are processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import ceil
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
import redis
import structlog
from sqlalchemy import select, update

from control_plane.broker.broker import Broker
from control_plane.collector import Collector
from control_plane.contract.declarations.orders import SubmitRequest
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.contract.documents.orders import OrderDocument
from control_plane.core import Caller, Core
from control_plane.core.background.timings import Timings
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.drones import Drone
from control_plane.db.orders import Dispatch, Order
from control_plane.operations import projects, providers
from control_plane.operations.orders import reading
from control_plane.supervisor import Supervisor
from shared.errors import FleetError
from shared.events import ABILITIES
from shared.names import new_id
from shared.reasons import OrderFacts
from shared.work_order import WorkOrder
from tests.support import wait_until
from tests.support.clocks import HandClock
from tests.support.quiet_logs import quiet_logs
from tests.support.stand_in import DroneStandIn, join

if TYPE_CHECKING:
    from tests.support.broker import BrokerServer
    from tests.support.database import CoreFactory

P = TypeVar("P", Collector, Supervisor)
T = TypeVar("T")

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
    users_every=2.0,
    quota_every=2.0,
    quota_pause=0.5,
    tail_after=0.3,
    resend_every=0.5,
    gap_after=600.0,
    pauses=(0.1, 0.2, 0.4),
    stop_within=0.05,
)
"""The production timings, shortened; silence keeps its 15 s and 60 s, unless a test shortens it."""


STEP_S = 0.25
"""By how much the clock advances between two rounds."""
ROUNDS = 120
"""Rounds after which a condition counts as never true."""
LITTLE_MEMORY = 64 * 1024 * 1024
"""Of which one drone may hold two fifths."""


@dataclass
class Plane:
    """A Core with a real broker and a database, an admin, a project, and the components on top, which run in rounds."""

    core: Core
    admin: Caller
    started: list[Collector | Supervisor] = field(default_factory=list)
    drones: list[DroneStandIn] = field(default_factory=list)

    def collector(self, **timings: float) -> Collector:
        """A collector, which hears every beat from now on if the broker is there."""
        return self._start(Collector(self.core, new_id(), replace(QUICK, **timings)))

    def supervisor(self, **timings: float) -> Supervisor:
        """A supervisor, which leads if no other does."""
        return self._start(Supervisor(self.core, new_id(), replace(QUICK, **timings)))

    def round(self, seconds: float = STEP_S) -> None:
        """Advance the clock, and let each component do one complete round."""
        self.core.clock.sleep(seconds)
        for part in self.started:
            part.round()
            for error in part.loops.errors.values():
                if not isinstance(error, FleetError):
                    raise error

    def until(self, condition: Callable[[], T], *, rounds: int = ROUNDS) -> T:
        """Return the condition's first true value, after as many rounds as that takes; fail if none makes it true."""
        for _ in range(rounds):
            if value := condition():
                return value
            self.round()
        if not (value := condition()):
            errors = [error for part in self.started for error in part.loops.errors.values()]
            pytest.fail(f"not true after {rounds} rounds; last value: {value!r}; errors of loops: {errors}")
        return value

    def pass_time(self, seconds: float) -> None:
        """Let this time pass, with a round at each step of the clock."""
        for _ in range(ceil(seconds / STEP_S)):
            self.round()

    def drone(self, name: str = "oka", *, online: bool = True, **fields: Any) -> DroneStandIn:
        """A registered drone; `online` writes its first beat directly, because no collector may be running."""
        made = join(self.core, self.admin, name, **fields)
        made.until = self.until
        self.drones.append(made)
        if online:
            beat = {"abilities": list(ABILITIES)}
            self.edit(Drone, made.id, last_seen_at=self.core.clock.now(), beat=beat)
        return made

    def submit(self, prompt: str = "do it", **fields: Any) -> str:
        """Submit an order; returns its id."""
        request = SubmitRequest.model_validate({"prompt": prompt, "project": "app", **fields})
        return reading.submit(self.core, self.admin, request).id

    def claimed(self, drone: DroneStandIn) -> WorkOrder:
        """An order for this drone, which it has claimed; nothing of it is reported."""
        drone.renew_lease()
        self.submit(drone=drone.name)
        return drone.taken()

    def begun(self, drone: DroneStandIn) -> WorkOrder:
        """An order that runs on this drone, with one event stored."""
        order = self.claimed(drone)
        drone.report(order, drone.started())
        self.reaches(order.order_id, "running")
        return order

    def order(self, order_id: str) -> OrderDocument:
        return reading.show_order(self.core, self.admin, order_id)

    def status(self, order_id: str) -> str:
        """The status alone, which costs a tenth of the whole document: for waiting."""
        return str(self.rows(Order, Order.id == order_id)[0].status)

    def reaches(self, order_id: str, status: str) -> OrderDocument:
        """The order, once it has this status."""
        self.until(lambda: self.status(order_id) == status)
        return self.order(order_id)

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
        for part in self.started:
            part.stop()
        for drone in self.drones:
            drone.close()

    def _start(self, part: P) -> P:
        self.started.append(part)
        part.round()
        return part


class LivePlane(Plane):
    """A control plane whose components run in threads, by the machine's clock."""

    def collector(self, **timings: float) -> Collector:
        """A running collector, which hears every beat from now on if the broker is there."""
        before = self._listening()
        made = super().collector(**timings)
        if before is not None:
            wait_until(lambda: (self._listening() or 0) > before)
        return made

    def until(self, condition: Callable[[], T], *, rounds: int = ROUNDS) -> T:
        """Wait for the condition; its first true value."""
        return wait_until(condition)

    def round(self, seconds: float = STEP_S) -> None:
        pytest.fail("the loops of a live plane run in threads, not in rounds")

    def close(self) -> None:
        # In parallel: each waits for threads that check only a few times a second whether to stop.
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda part: part.stop(), self.started))
        self.started.clear()
        super().close()

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
def plane(core_factory: CoreFactory, database_url: str, broker: Broker) -> Iterator[Plane]:
    """A control plane on Valkey with a project `app`; it has no components yet."""
    yield from plane_on(core_factory(database_url, broker=broker, clock=hand_clock()))


@pytest.fixture
def running(plane: Plane) -> Plane:
    """`plane` with a collector and a supervisor."""
    plane.collector(), plane.supervisor()
    return plane


@pytest.fixture
def oka(plane: Plane) -> DroneStandIn:
    """The drone `oka` of `plane`."""
    return plane.drone("oka")


@pytest.fixture
def small_plane(core_factory: CoreFactory, sqlite_url: str, request: pytest.FixtureRequest) -> Iterator[Plane]:
    """Like `plane`, with as little memory as a broker may have; on each kind of server if marked `on_each_server`."""
    server: BrokerServer = request.getfixturevalue(getattr(request, "param", "valkey"))
    before = server.redis.config_get("maxmemory")["maxmemory"]
    server.redis.config_set("maxmemory", LITTLE_MEMORY)
    broker = Broker(server.url)
    yield from plane_on(core_factory(sqlite_url, broker=broker, clock=hand_clock()))
    broker.close()
    server.redis.config_set("maxmemory", before)


on_each_server = pytest.mark.parametrize("small_plane", ["valkey", "redis_server"], indirect=True)


@pytest.fixture
def live_plane(core_factory: CoreFactory, database_url: str, broker: Broker) -> Iterator[Plane]:
    """Like `plane`, with components in threads."""
    yield from plane_on(core_factory(database_url, broker=broker), LivePlane)


def hand_clock() -> HandClock:
    """A clock that begins with the time of day: the broker and the drones' certificates have one of their own."""
    return HandClock(datetime.now(UTC))


def plane_on(core: Core, kind: type[Plane] = Plane) -> Iterator[Plane]:
    """Yield a control plane on this Core, and close it afterwards."""
    # Tracebacks as plain text: rendering one with all local variables in colour takes seconds.
    structlog.configure([structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()])
    admin = system_caller(core)
    providers.add(core, admin, ProviderRequest(name="scripted", model="openai/scripted", api_key="sk-secret"))
    projects.add(core, admin, ProjectRequest(slug="app", git_url="https://git.example/app.git"))
    made = kind(core, admin)
    yield made
    made.close()
    quiet_logs()
