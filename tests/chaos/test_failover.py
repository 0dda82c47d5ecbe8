"""The broker's primary and the database's primary are killed under load, and their replicas take over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from control_plane.broker.valkey_config import program
from tests.chaos.fleet_under_load import FleetUnderLoad, Size
from tests.chaos.load import Load
from tests.chaos.test_outages import Stage, ended_by_themselves
from tests.support import needs, wait_until
from tests.support.postgres import ReplicatedPostgres
from tests.support.replicated_broker import ReplicatedBroker

pytestmark = [pytest.mark.chaos, pytest.mark.long]
SIZE = Size(drones=2, slots=2, step_seconds=0.4)


@pytest.fixture
def staged(tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    """A function that starts a fleet with these options."""
    fleets: list[FleetUnderLoad] = []

    def start(**options: Any) -> Stage:
        fleet = FleetUnderLoad(tmp_path / "fleet", SIZE, **options)
        fleets.append(fleet)
        fleet.start()
        return Stage(fleet, Load(fleet, followers=1))

    yield start
    for fleet in fleets:
        fleet.close()


@pytest.mark.timeout(600)
def test_a_killed_primary_of_the_broker_costs_no_order(staged: Callable[..., Stage]) -> None:
    needs("haproxy")
    stage = staged(make_broker=lambda directory: ReplicatedBroker(directory, program()))
    broker = stage.fleet.broker
    assert isinstance(broker, ReplicatedBroker)
    stage.submit(4)
    stage.running(2)
    old, new = broker.servers
    assert {drone.id for drone in stage.fleet.drones.values()} <= set(new.redis.acl_users())

    old.stop(kill=True)
    stage.submit(2)
    wait_until(lambda: broker.primary() is new, seconds=60)
    wait_until(lambda: stage.fleet.consuming() == set(stage.fleet.drones), seconds=60)

    found = stage.settled()
    assert (found.broken, ended_by_themselves(stage)) == ([], [])
    assert (found.statuses, found.lost_runs, found.unpushed) == ({"succeeded": 6}, 0, {})


@pytest.mark.timeout(600)
def test_a_killed_primary_of_the_database_costs_no_order(staged: Callable[..., Stage]) -> None:
    stage = staged(make_postgres=ReplicatedPostgres.create)
    postgres = stage.fleet.postgres
    assert isinstance(postgres, ReplicatedPostgres)
    stage.submit(3)
    stage.running(2)
    postgres.stop()
    postgres.start()
    stage.submit(1)

    postgres.fail_over()
    stage.submit(2)

    found = stage.settled()
    assert (found.broken, ended_by_themselves(stage)) == ([], [])
    assert (found.statuses, found.lost_runs, found.unpushed) == ({"succeeded": 6}, 0, {})
