"""A real drone that is frozen while another one takes its order over and finishes it: thawed, it changes nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update

from control_plane.contract.documents.orders import OrderDocument
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.drones import Drone
from control_plane.db.runs import Step
from drone.runs.lease import VALID_SECONDS
from shared import names
from tests.support import wait_until
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.freezing import frozen
from tests.support.outages import OutageFleet, outage_fleet
from tests.support.stand_in import DroneStandIn, join


@pytest.fixture
def impatient(
    sqlite_url: str, valkey: BrokerServer, tmp_path: Path, core_factory: CoreFactory
) -> Iterator[OutageFleet]:
    """A control plane that soon gives up a drone which is silent."""
    with outage_fleet(sqlite_url, valkey, tmp_path, core_factory, lost_after=3.0) as fleet:
        yield fleet


def fall_silent(fleet: OutageFleet, drone_id: str) -> None:
    """As after a minute without a beat: the lease key is gone, and the last sign of life is old."""
    fleet.broker.redis.delete(names.lease_key(drone_id))
    long_ago = fleet.core.clock.now() - timedelta(minutes=5)
    with fleet.core.database.write() as db:
        db.execute(update(Drone).where(Drone.id == drone_id).values(last_seen_at=long_ago))


def take_over(fleet: OutageFleet, order_id: str, other: DroneStandIn) -> OrderDocument:
    """Another drone gets the order, and finishes it."""
    again = wait_until(lambda: other.beat() or other.take(), seconds=60)
    assert (again.order_id, again.generation) == (order_id, 2)
    other.do(again)
    return wait_until(lambda: (found := fleet.order(order_id)).status == "succeeded" and found)


def of_the_order(order: OrderDocument) -> dict[str, object]:
    """What a late run must not change."""
    return order.model_dump(exclude={"runs", "steps", "stats", "late_refs"})


def ended(fleet: OutageFleet, run_id: str) -> bool:
    with fleet.core.database.read() as db:
        return db.scalar(select(Step.id).where(Step.run_id == run_id, Step.kind == "run_ended")) is not None


@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_a_thawed_drone_stops_and_keeps_its_work_under_a_ref_of_its_own(impatient: OutageFleet, tmp_path: Path) -> None:
    fleet = impatient
    mila = fleet.drone("mila")
    mila.start_worker()
    wait_until(lambda: fleet.seen(mila), seconds=60)
    order_id = fleet.submit("long")
    fleet.results(order_id, 1, seconds=150)
    run_id = fleet.order(order_id).runs[0].id
    assert mila.process is not None
    with frozen(mila.process.pid):
        oka = join(fleet.core, system_caller(fleet.core), "oka")
        fall_silent(fleet, mila.id)
        done = take_over(fleet, order_id, oka)
        oka.close()
    wait_until(lambda: f"run {run_id} was revoked by the control plane" in mila.log())
    wait_until(lambda: ended(fleet, run_id), seconds=2 * VALID_SECONDS)
    late = f"fleet-late/{order_id}/1"
    after = fleet.order(order_id)
    assert of_the_order(after) == of_the_order(done)
    assert ([run.status for run in after.runs], after.late_refs) == (["lost", "success"], [late])
    branches = ["git", "-C", str(tmp_path / "demo.git"), "for-each-ref", "--format=%(refname:short)", "refs/heads"]
    assert subprocess.check_output(branches, text=True).split() == [late, "main"]
