"""What people and the supervisor ask most costs the same in a large database as in a small one."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from control_plane.db.engine import sqlite_url_of
from tests.bench.table_sizes import LARGE, REQUESTS, SMALL, TableSize, cost_of, two_fleets
from tests.support.broker import BrokerServer

pytestmark = [pytest.mark.bench, pytest.mark.apart, pytest.mark.dialects]

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


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("form", ["short", pytest.param("long", marks=pytest.mark.long)])
def test_requests_take_about_as_long_in_a_large_database(
    two_urls: tuple[str, str], valkey: BrokerServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    """The short form: what reads every row takes several times as long even with 5,000 orders."""
    size = LARGE if form == "long" else TableSize(orders=5_000, steps=1_000)
    most = dict.fromkeys(REQUESTS, 2.0) | BEHIND if form == "long" else dict.fromkeys(REQUESTS, 4.0)
    with two_fleets(two_urls, (SMALL, size), valkey, tmp_path) as fleets:
        costs = {what: cost_of(ask, fleets) for what, ask in REQUESTS.items()}
    with capsys.disabled():
        sys.stdout.writelines(f"\n  {what:<14} {each}" for what, each in costs.items())
    assert {what: str(cost) for what, cost in costs.items() if cost.times > most[what]} == {}
