"""The rows about the size of the database: what is asked most, with a thousand times as much in it."""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path

from control_plane.broker.valkey_config import program
from control_plane.db.engine import sqlite_url_of
from control_plane.db.upgrade import apply_migrations
from tests.bench.side_by_side.report import Aim, BenchRow
from tests.bench.table_sizes import LARGE, REQUESTS, SMALL, FilledFleet, cost_of, two_fleets
from tests.support.broker import BrokerServer
from tests.support.postgres import PostgresServer, needs_postgres

BESIDE = f"{SMALL.orders} orders, {SMALL.steps} steps"
BOUNDS = {"session page": "it looks through all steps of an order for some of them"}


def size_rows() -> Iterator[BenchRow]:
    """The rows in the order of the table."""
    for kind in ("SQLite", "PostgreSQL"):
        for what, ask in REQUESTS.items():
            yield BenchRow(
                f"{what} with {LARGE.orders:,} orders and {LARGE.steps:,} steps, {kind}",
                partial(_measured, kind, ask),
                "ms",
                (Aim(BESIDE, 2.0),),
                bound=BOUNDS.get(what, ""),
            )


def _measured(kind: str, ask: Callable[[FilledFleet], float]) -> Mapping[str, float]:
    cost = cost_of(ask, _fleets(kind))
    return {"ours": cost.large_ms, BESIDE: cost.small_ms}


@cache
def _fleets(kind: str) -> tuple[FilledFleet, FilledFleet]:
    """Filled once, and used by all rows and rounds until the program ends."""
    with ExitStack() as opened:
        where = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        (where / "broker").mkdir()
        broker = BrokerServer(where / "broker", program())
        opened.callback(broker.close)
        broker.start()
        urls = _postgres_urls(opened) if kind == "PostgreSQL" else _sqlite_urls(where)
        for url in urls:
            apply_migrations(url)
        fleets = opened.enter_context(two_fleets(urls, (SMALL, LARGE), broker, where))
        atexit.register(opened.pop_all().close)
    return fleets


def _sqlite_urls(where: Path) -> tuple[str, str]:
    return sqlite_url_of(where / "small.db"), sqlite_url_of(where / "large.db")


def _postgres_urls(opened: ExitStack) -> tuple[str, str]:
    server = PostgresServer.create(needs_postgres())
    opened.callback(server.remove)
    server.start()
    for name in ("small", "large"):
        server.execute(f"CREATE DATABASE {name}")
    return server.url("small"), server.url("large")
