"""What people and the supervisor ask most costs the same in a large database as in a small one."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from control_plane.db.engine import sqlite_url_of
from tests.bench.table_sizes import LARGE, REQUESTS, SMALL, FilledFleet, SizeCost, TableSize, cost_of, two_fleets
from tests.support.broker import BrokerServer

pytestmark = [pytest.mark.bench, pytest.mark.apart]

BEHIND = {"session page": 6.0}
"""What does not meet the aim, and its bound: the page looks through all steps of an order for some of them."""


@pytest.fixture(params=["sqlite", "postgresql"])
def two_urls(request: pytest.FixtureRequest, sqlite_template: Path, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Two migrated databases of one kind."""
    if request.param == "postgresql":
        server = request.getfixturevalue("postgres_server")
        names = server.take(), server.take()
        yield server.url(names[0]), server.url(names[1])
        for name in names:
            server.give_back(name)
        return
    files = tmp_path / "small.db", tmp_path / "large.db"
    for file in files:
        shutil.copy(sqlite_template, file)
    yield sqlite_url_of(files[0]), sqlite_url_of(files[1])


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_requests_take_about_twice_as_long_at_most_with_100000_orders_and_10000_steps(
    two_urls: tuple[str, str], valkey: BrokerServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with two_fleets(two_urls, (SMALL, LARGE), valkey, tmp_path) as fleets:
        costs = measured(fleets, capsys)

    assert slower(costs, dict.fromkeys(REQUESTS, 2.0) | BEHIND) == {}


@pytest.mark.timeout(300)
def test_requests_take_about_as_long_with_5000_orders_and_1000_steps(
    two_urls: tuple[str, str], valkey: BrokerServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The short form: what reads every row takes several times as long even here."""
    with two_fleets(two_urls, (SMALL, TableSize(orders=5_000, steps=1_000)), valkey, tmp_path) as fleets:
        costs = measured(fleets, capsys)

    assert slower(costs, dict.fromkeys(REQUESTS, 4.0)) == {}


def slower(costs: Mapping[str, SizeCost], most: Mapping[str, float]) -> dict[str, float]:
    return {what: round(cost.times, 1) for what, cost in costs.items() if cost.times > most[what]}


def measured(fleets: tuple[FilledFleet, FilledFleet], capsys: pytest.CaptureFixture[str]) -> Mapping[str, SizeCost]:
    """Each request's cost, which is also printed."""
    costs = {what: cost_of(ask, fleets) for what, ask in REQUESTS.items()}
    with capsys.disabled():
        sys.stdout.writelines(
            f"\n  {what:<14} {each.small_ms:7.1f} ms, {each.large_ms:7.1f} ms: {each.times:4.1f} times"
            for what, each in costs.items()
        )
    return costs
