"""What a batch costs: orders per second of a batch, as a ratio to orders that are submitted one by one.

Both are worked off in the same run by the same drones, which are played: they end each order at once, so that what is
measured is the control plane. At any time as many orders are under way on both sides. The throughput is by the clock,
and belongs to a machine that does nothing else; the processor time can be compared on a busy one, too.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import pytest
from sqlalchemy import func, select

from control_plane.db.orders import Order
from tests.support import wait_until
from tests.support.batches import rows_of, submit_batch, work
from tests.support.planes import Plane

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1800)]
ORDERS = 60
PARALLEL = 4
ROUNDS = 5
LEAST = 0.9
FEW_ORDERS = 40
FEW_ROUNDS = 3
MOST_PROCESSOR = 1.3
BEAT_S = 2.0


class Cost(NamedTuple):
    seconds: float
    processor: float
    """Seconds of processor time of this process, in which the control plane and the drones run."""


@pytest.mark.long
def test_a_batch_has_nine_tenths_of_the_throughput_of_plain_orders(live_plane: Plane) -> None:
    ratios = [1 / each.seconds for each in ratios_of(live_plane, ORDERS, ROUNDS)]
    # The median: what else the machine does in one half of a round says nothing about the batch.
    assert statistics.median(ratios) >= LEAST, ratios


def test_an_order_of_a_batch_takes_about_the_processor_time_of_a_plain_one(live_plane: Plane) -> None:
    ratios = [each.processor for each in ratios_of(live_plane, FEW_ORDERS, FEW_ROUNDS)]
    assert statistics.median(ratios) <= MOST_PROCESSOR, ratios


def ratios_of(plane: Plane, orders: int, rounds: int) -> list[Cost]:
    """What a batch of so many orders takes, each time divided by what as many plain orders take just before."""
    for name in ("oka", "mila", "vida", "uma"):
        plane.drone(name)
    plane.collector()
    plane.supervisor()
    ratios = []
    for number in range(rounds):
        plain = cost(plane, plain_orders(plane, orders), orders)
        batch = cost(plane, batch_orders(plane, f"batch-{number}", orders), orders)
        ratio = Cost(batch.seconds / plain.seconds, batch.processor / plain.processor)
        ratios.append(ratio)
        sys.stdout.write(
            f"plain {orders / plain.seconds:.1f} orders/s, batch {orders / batch.seconds:.1f} orders/s, "
            f"ratio {1 / ratio.seconds:.2f}; processor time {ratio.processor:.2f}\n"
        )
    return ratios


def plain_orders(plane: Plane, orders: int) -> Iterator[None]:
    """Submits the next order each time it is asked, as a program does that keeps as many under way."""
    for number in range(orders):
        plane.submit(f"solve {number}")
        yield


def batch_orders(plane: Plane, name: str, orders: int) -> Iterator[None]:
    submit_batch(plane, rows_of(range(orders)), name, PARALLEL)
    yield from (None for _ in range(orders))


def cost(plane: Plane, asked_for: Iterator[None], orders: int) -> Cost:
    """What it takes to work off the orders; asks for the next one whenever one has ended."""
    before, began, processor = ended(plane), time.monotonic(), time.process_time()
    list(islice(asked_for, PARALLEL))
    asked, beaten = 0, 0.0

    def step() -> bool:
        nonlocal asked, beaten
        beats = time.monotonic() - beaten > BEAT_S
        beaten = time.monotonic() if beats else beaten
        for drone in plane.drones:
            if beats:
                drone.beat()
            while (order := drone.take()) is not None:
                work(drone, order)
        done = ended(plane) - before
        list(islice(asked_for, done - asked))
        asked = done
        return done == orders

    wait_until(step, seconds=600, every=0.01)
    return Cost(time.monotonic() - began, time.process_time() - processor)


def ended(plane: Plane) -> int:
    with plane.core.database.read() as db:
        return db.scalar(select(func.count(Order.id)).where(Order.ended_at.is_not(None))) or 0
