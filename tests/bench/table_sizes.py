"""Two fleets that differ in what their databases hold, and what the same requests cost on each, in alternation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import httpx
from sqlalchemy import insert, select, text, update

from control_plane.contract.declarations import orders
from control_plane.contract.declarations.orders import SubmitRequest
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.drones import Drone, InboxMessage
from control_plane.db.installation import Counter
from control_plane.db.orders import Order
from control_plane.db.runs import Run, Step
from control_plane.operations.orders import reading
from control_plane.operations.orders.canceling import cancel
from control_plane.supervisor.outbox_relay import Relay
from control_plane.supervisor.placing import place_queued
from shared.control import Confirm
from shared.events import ABILITIES, AssistantStep, ToolCallStep, ToolResultStep, Usage
from shared.messages import ToolCall
from shared.names import new_id
from tests.support.broker import BrokerServer
from tests.support.database import core_on
from tests.support.fleet import Api, api_on
from tests.support.many_tasks import fill
from tests.support.team_rows import add_agent

ROUNDS = 9
EACH = 10
"""The orders of one session."""
_CHUNK = 10_000


@dataclass(frozen=True)
class TableSize:
    """How much there is: orders in the database, each of which told its drone one thing, and steps in one session."""

    orders: int
    steps: int


SMALL, LARGE = TableSize(orders=100, steps=10), TableSize(orders=100_000, steps=10_000)


@contextmanager
def two_fleets(
    urls: tuple[str, str], sizes: tuple[TableSize, TableSize], broker: BrokerServer, directory: Path
) -> Iterator[tuple[FilledFleet, FilledFleet]]:
    """A fleet on each of these databases, which are migrated and empty."""
    with (
        _filled(urls[0], sizes[0], broker, directory / "small") as small,
        _filled(urls[1], sizes[1], broker, directory / "large") as large,
    ):
        yield small, large


@dataclass(frozen=True)
class SizeCost:
    """The shortest of the rounds on each database, in milliseconds: the rest is other load on the machine."""

    small_ms: float
    large_ms: float

    @property
    def times(self) -> float:
        return self.large_ms / self.small_ms

    def __str__(self) -> str:
        return f"{self.small_ms:7.1f} ms, {self.large_ms:7.1f} ms: {self.times:4.1f} times"


@dataclass(frozen=True)
class FilledFleet:
    """An HTTP interface over a database of one size."""

    api: Api
    caller: Caller
    browser: httpx.Client
    order: Order
    """The newest one. It has all the steps, and its session the orders before it."""
    short_id: str
    """The id of an order without steps."""

    def ls(self) -> float:
        return _ms(lambda: self.api.client.call(orders.LIST))

    def show(self) -> float:
        """An order without steps: the others come with all that they have."""
        return _ms(lambda: self.api.client.call(orders.SHOW, order_id=self.short_id))

    def orders_page(self) -> float:
        return _ms(lambda: self.browser.get("/orders").raise_for_status())

    def session_page(self) -> float:
        return _ms(lambda: self.browser.get(f"/sessions/{self.order.session_id}").raise_for_status())

    def dispatch(self) -> float:
        """From the submission of an order to its message on the drone's queue; it is canceled afterwards."""
        core, ids = self.api.core, list[str]()

        def submit() -> None:
            ids.append(reading.submit(core, self.caller, SubmitRequest(prompt="Go on.", project="demo")).id)
            place_queued(core)
            assert Relay(core).publish_all() == 1

        with core.database.write() as db:
            # No collector runs that would store the drone's beats.
            db.execute(update(Drone).values(last_seen_at=core.clock.now()))
        took = _ms(submit)
        cancel(core, self.caller, ids[0])
        return took


REQUESTS: Mapping[str, Callable[[FilledFleet], float]] = {
    "`fleet ls`": FilledFleet.ls,
    "`fleet show`": FilledFleet.show,
    "dispatch": FilledFleet.dispatch,
    "orders page": FilledFleet.orders_page,
    "session page": FilledFleet.session_page,
}


def cost_of(ask: Callable[[FilledFleet], float], fleets: tuple[FilledFleet, FilledFleet]) -> SizeCost:
    """Of one of the requests, asked in turn."""
    small, large = fleets
    ask(small), ask(large)
    pairs = [(ask(small), ask(large)) for _ in range(ROUNDS)]
    return SizeCost(min(each for each, _ in pairs), min(each for _, each in pairs))


def _ms(ask: Callable[[], object]) -> float:
    began = perf_counter()
    ask()
    return (perf_counter() - began) * 1000


@contextmanager
def _filled(url: str, size: TableSize, broker: BrokerServer, directory: Path) -> Iterator[FilledFleet]:
    directory.mkdir(parents=True)
    with api_on(url, broker, lambda url, **options: core_on(url, directory, **options)) as api:
        api.add_work()
        drone, caller = api.add_drone(), system_caller(api.core)
        fill(api.core, caller, [add_agent(api.core, caller, "anna")], tasks=size.orders // EACH, each=EACH)
        with api.core.database.write() as db:
            db.execute(update(Counter).where(Counter.name == "orders").values(value=size.orders))
            db.execute(update(Drone).where(Drone.id == drone.id).values(beat={"abilities": list(ABILITIES)}))
            order, short = db.scalars(select(Order).order_by(Order.number.desc()).limit(2)).all()
        _add_messages(api.core, caller, size.orders)
        _add_steps(api.core, order, size.steps)
        settle(api.core)
        with api.browser() as browser:
            yield FilledFleet(api, caller, browser, order, short.id)


def _add_messages(core: Core, caller: Caller, count: int) -> None:
    """A confirmation for each run, sent and acted on."""
    with core.database.write() as db:
        now, drone_id = core.clock.now(), db.scalars(select(Drone.id)).one()
        row = {"organization_id": caller.organization_id, "drone_id": drone_id, "created_at": now, "sent_at": now}
        row |= {"body": Confirm(run_id=new_id(), last_seq=9).model_dump(mode="json"), "done_at": now}
        for begin in range(0, count, _CHUNK):
            db.execute(insert(InboxMessage), [row | {"id": new_id()} for _ in range(begin, min(count, begin + _CHUNK))])


def _add_steps(core: Core, order: Order, count: int) -> None:
    now = core.clock.now()
    row = {"organization_id": order.organization_id, "order_id": order.id, "run_id": order.run_id}
    row |= {"at": now, "drone_at": now, "late": False}
    with core.database.write() as db:
        for begin in range(0, count, _CHUNK):
            numbers = range(begin + 1, min(count, begin + _CHUNK) + 1)
            db.execute(insert(Step), [row | _step(number) for number in numbers])
        db.execute(update(Order).where(Order.id == order.id).values(step_count=count))
        db.execute(update(Run).where(Run.id == order.run_id).values(last_seq=count))


def _step(number: int) -> dict[str, object]:
    """Three steps are an answer with a call, the call, and its result."""
    call_id = f"call-{(number - 1) // 3}"
    arguments = {"command": f"grep -rn part{number} ."}
    body = (
        AssistantStep(
            text="I look for the next part. " * 4,
            tool_calls=(ToolCall(id=call_id, name="bash", arguments='{"command": "ls"}'),),
            usage=Usage(input_tokens=1000, output_tokens=50, cost_usd=0.001),
        ),
        ToolCallStep(call_id=call_id, tool="bash", arguments=arguments),
        ToolResultStep(call_id=call_id, output="a line of output\n" * 20, return_code=0),
    )[(number - 1) % 3]
    return {"seq": number, "run_seq": number, "kind": body.kind, "body": body.model_dump(mode="json")}


def settle(core: Core) -> None:
    """Vacuum and analyze, as PostgreSQL does automatically within minutes."""
    if core.database.is_sqlite:
        return
    with core.database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))
