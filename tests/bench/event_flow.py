"""Events of 20 orders from their drones into the database, and on to 20 clients that follow them: how many, how late.

The drones are stand-ins that send events sealed beforehand; control plane, PostgreSQL, Valkey and HTTP are real. As a
program, it is the clients: `python -m tests.bench.event_flow URL TOKEN ORDER…` follows each order in a thread until
standard input ends, then prints the Unix times at which the steps of each order arrived, as JSON.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import func, select

from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.declarations import drones as drone_operations
from control_plane.contract.declarations import orders
from control_plane.contract.declarations.orders import SubmitRequest
from control_plane.db.runs import Step
from shared.events import AssistantStep, Body, Prepared, ToolCallStep, ToolResultStep, Usage, UserStep
from shared.work_order import WorkOrder
from tests.scale.fleet import ScaleFleet, ScaleSize, scale_fleet
from tests.support import wait_until
from tests.support.stand_in import DroneStandIn

ORDERS = 20
_FIRST_STEPS = 3
"""Of each run, before what is measured."""
_BEAT_S = 4.0


@dataclass(frozen=True)
class EventFlow:
    """What one measurement found."""

    stored_per_s: float
    """Events that were stored per second while all of them waited in the drones' streams."""
    lag_p95_ms: float
    """From sending an event to its arrival at a client, at the paced rate."""
    lost: int
    """Events that a client did not get, or got twice."""
    processor_ms: dict[str, float]
    """What each process used for a stored event, its way to the client included; it counts on a busy machine, too."""


@dataclass
class SentRun:
    """A claimed order, and what its drone has sent of it."""

    drone: DroneStandIn
    order: WorkOrder
    waiting: list[str] = field(default_factory=list)
    """Sealed events that are not sent yet."""
    sent_at: list[float] = field(default_factory=list)

    def seal(self, count: int) -> None:
        self.waiting += self.drone.sealed_journal(self.order, bodies(count))

    def send(self, count: int) -> None:
        now, (first, self.waiting) = time.time(), (self.waiting[:count], self.waiting[count:])
        self.drone.send_sealed(first)
        self.sent_at += [now] * len(first)

    def beat(self) -> None:
        last = len(self.drone.journals[self.order.run_id]) - len(self.waiting)
        self.drone.beat(self.drone.run_beat(self.order, last_seq=last))


def measure(root: Path, *, waiting: int, rate: float, seconds: float) -> EventFlow:
    """Store `waiting` events of all orders that are sent at once, then send at `rate` per second for some seconds."""
    size = ScaleSize(drones=ORDERS, orders=ORDERS, slots=1)
    with scale_fleet(root, size) as fleet:
        stand_ins = fleet.drones(size)
        fleet.start_roles(size)
        runs = claimed(fleet, stand_ins)
        with beating(runs), _followers(fleet, runs) as clients:
            before = fleet.used()
            stored_per_s = _stored(fleet, runs, waiting)
            after = fleet.used()
            began_at = len(runs[0].sent_at)
            _paced(runs, rate, seconds)
            _wait_stored(fleet, runs)
            time.sleep(1)
            out, _ = clients.communicate("", timeout=60)
    arrived = {order: times[_FIRST_STEPS:] for order, times in json.loads(out).items()}
    pairs = [list(zip(arrived[run.order.order_id], run.sent_at, strict=False))[began_at:] for run in runs]
    lags = [1e3 * (got - sent) for each in pairs for got, sent in each]
    lost = sum(abs(len(run.sent_at) - len(arrived[run.order.order_id])) for run in runs)
    used = {name: round(1e3 * (after[name].cpu_s - before[name].cpu_s) / waiting, 3) for name in before}
    return EventFlow(stored_per_s, statistics.quantiles(lags, n=20)[-1], lost, used)


def claimed(fleet: ScaleFleet, stand_ins: list[DroneStandIn]) -> list[SentRun]:
    """One running order on each drone."""
    for drone in stand_ins:
        drone.beat()
    with fleet.client() as client:
        wait_until(lambda: all(each["status"] == "online" for each in client.call(drone_operations.LIST)))
        for drone in stand_ins:
            client.call(orders.SUBMIT, SubmitRequest(prompt="Go on.", project="demo", drone=drone.name))
    runs = []
    for drone in stand_ins:
        order = wait_until(drone.take)
        assert drone.claim(order)
        drone.report(order, drone.started(), Prepared(base_commit="a" * 40), UserStep(text="Go on.", source="prompt"))
        runs.append(SentRun(drone, order))
    return runs


def bodies(count: int) -> Iterator[Body]:
    """Steps as an agent makes them: what it says, a call, its result."""
    for number in range(count):
        match number % 3:
            case 0:
                usage = Usage(input_tokens=900, output_tokens=40, cost_usd=0.001)
                yield AssistantStep(text=f"Now I look at file {number}.", usage=usage)
            case 1:
                yield ToolCallStep(call_id=f"c{number}", tool="shell", arguments={"command": f"cat file-{number}"})
            case _:
                yield ToolResultStep(call_id=f"c{number - 1}", output="a line of the file\n" * 20, return_code=0)


def _stored(fleet: ScaleFleet, runs: list[SentRun], count: int) -> float:
    for run in runs:
        run.seal(count // len(runs))
    before, began = _steps(fleet), time.monotonic()
    for run in runs:
        run.send(len(run.waiting))
    _wait_stored(fleet, runs)
    return (_steps(fleet) - before) / (time.monotonic() - began)


def _paced(runs: list[SentRun], rate: float, seconds: float) -> None:
    """Send at this rate, one run after the other: real drones do not speak in unison."""
    each = int(rate * seconds / len(runs))
    for run in runs:
        run.seal(each)
    began = time.monotonic()
    for number, run in enumerate(runs * each):
        time.sleep(max(0.0, began + number / rate - time.monotonic()))
        run.send(1)


def _wait_stored(fleet: ScaleFleet, runs: list[SentRun]) -> None:
    wanted = sum(_FIRST_STEPS + len(run.sent_at) for run in runs)
    wait_until(lambda: _steps(fleet) >= wanted, seconds=300, every=0.05)


def _steps(fleet: ScaleFleet) -> int:
    with fleet.core.database.read() as db:
        return db.scalar(select(func.count()).select_from(Step)) or 0


@contextmanager
def beating(runs: list[SentRun]) -> Iterator[None]:
    """Let the drones beat, from a thread, until the block ends."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(_BEAT_S):
            for run in runs:
                run.beat()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def _followers(fleet: ScaleFleet, runs: list[SentRun]) -> Iterator[subprocess.Popen[str]]:
    """Clients in a process of their own that follow the orders, and have their first steps."""
    words = [sys.executable, "-m", "tests.bench.event_flow", fleet.external.url, fleet.external.token]
    words += [run.order.order_id for run in runs]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def main() -> None:
    """Be the clients."""
    url, token, *ids = sys.argv[1:]
    arrived: dict[str, list[float]] = {each: [] for each in ids}

    def follow(order_id: str) -> None:
        with FleetClient(url, token, "default") as client:
            for kind, _ in client.follow(order_id):
                if kind == "step":
                    arrived[order_id].append(time.time())

    for each in ids:
        threading.Thread(target=follow, args=(each,), daemon=True).start()
    wait_until(lambda: all(len(times) == _FIRST_STEPS for times in arrived.values()), seconds=60)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()
    sys.stdout.write(json.dumps(arrived))
    sys.stdout.flush()
    # The threads wait on their streams.
    os._exit(0)


if __name__ == "__main__":
    main()
