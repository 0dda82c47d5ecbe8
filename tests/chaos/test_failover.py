"""The broker's primary and the database's primary are killed under load, and their replicas take over."""

from __future__ import annotations

from pathlib import Path

import pytest

from control_plane.broker.valkey_config import program
from tests.chaos.fleet_under_load import FleetUnderLoad, Size
from tests.chaos.stage import staged
from tests.support import needs, wait_until
from tests.support.postgres import ReplicatedPostgres
from tests.support.replicated_broker import ReplicatedBroker

pytestmark = [pytest.mark.chaos, pytest.mark.long, pytest.mark.timeout(600)]
SIZE = Size(drones=2, slots=2, step_seconds=0.4)


def test_a_killed_primary_of_the_broker_costs_no_order(tmp_path: Path) -> None:
    needs("haproxy")
    made = FleetUnderLoad(tmp_path, SIZE, make_broker=lambda directory: ReplicatedBroker(directory, program()))
    with staged(made) as stage:
        broker, drones = stage.fleet.broker, stage.fleet.drones
        assert isinstance(broker, ReplicatedBroker)
        stage.submit(4)
        stage.running(2)
        old, new = broker.servers
        assert {drone.id for drone in drones.values()} <= set(new.redis.acl_users())

        old.stop(kill=True)
        stage.submit(2)
        wait_until(lambda: broker.primary() is new, seconds=60)
        wait_until(lambda: stage.fleet.consuming() == set(drones), seconds=60)
        assert stage.all_succeeded().lost_runs == 0


def test_a_killed_primary_of_the_database_costs_no_order(tmp_path: Path) -> None:
    with staged(FleetUnderLoad(tmp_path, SIZE, make_postgres=ReplicatedPostgres.create)) as stage:
        postgres = stage.fleet.postgres
        assert isinstance(postgres, ReplicatedPostgres)
        stage.submit(3)
        stage.running(2)
        postgres.stop()
        postgres.start()
        stage.submit(1)
        postgres.fail_over()
        stage.submit(2)
        assert stage.all_succeeded().lost_runs == 0
