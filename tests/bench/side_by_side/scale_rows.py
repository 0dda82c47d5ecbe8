"""The rows about many events and many orders, on PostgreSQL, with stand-ins for drones that run nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from tests.bench.event_flow import ORDERS, measure
from tests.bench.side_by_side.report import Aim, BenchRow
from tests.scale.bare_celery import tasks_per_s
from tests.scale.fleet import ScaleSize
from tests.scale.simulation import simulate

WAITING = 12_000
RATE = 1500.0
CELERY = "a task of bare Celery"


def scale_rows() -> Iterator[BenchRow]:
    """The rows in the order of the table."""
    yield BenchRow(
        f"an event into the database, {ORDERS} orders followed by {ORDERS} clients",
        partial(_flow, "event"),
        "ms",
        (Aim("", 1000 / 3000),),
        bound="the collector's thread: SQLAlchemy's insert and commit, opening the envelope",
    )
    yield BenchRow(
        f"from a drone to a client that follows, {RATE:,.0f} events per second, the slowest of 20",
        partial(_flow, "lag"),
        "ms",
        (Aim("", 150.0),),
        bound="the same, and each stream reads its order again for its news",
    )
    yield BenchRow(
        "an order of many, with 20 stand-in drones",
        _orders,
        "ms",
        (Aim(CELERY, 5.0),),
        bound="about 35 ms of processor time in API, supervisor, collector and PostgreSQL each",
    )


def _flow(part: str) -> Mapping[str, float]:
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        found = measure(Path(directory) / "fleet", waiting=WAITING, rate=RATE, seconds=4.0)
    if found.lost:
        raise RuntimeError(f"{found.lost} events did not reach the clients, or twice")
    return {"ours": 1000 / found.stored_per_s if part == "event" else found.lag_p95_ms}


def _orders() -> Mapping[str, float]:
    """From the first submission to the end of the last order, for each order."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        outcome = simulate(ScaleSize(drones=20, orders=200, submitters=4), Path(directory) / "fleet")
        celery = tasks_per_s(Path(directory) / "celery", 2000)
    if broken := outcome.broken():
        raise RuntimeError("; ".join(broken))
    return {"ours": 1000 / outcome.figures["orders_per_s"], CELERY: 1000 / celery}
