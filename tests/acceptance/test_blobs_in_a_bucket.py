"""A fleet that keeps its blobs in a bucket (of a stand-in server): patches and logs, also when the server was away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from control_plane.contract.declarations import orders, server
from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.s3_server import S3Server
from tests.support.whole_fleet import WholeFleet

pytestmark = [pytest.mark.campaign, pytest.mark.chaos, pytest.mark.timeout(300)]


@pytest.fixture
def fleet(
    s3_server: S3Server, start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path
) -> WholeFleet:
    """A fleet with one drone, whose blobs are in the bucket."""
    fleet = start_fleet(
        drones=1, code={f"FLEET_{name.upper()}": str(value) for name, value in s3_server.settings.items()}
    )
    fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
    return fleet


def test_patches_and_logs_are_in_the_bucket_also_of_work_that_ended_while_its_server_was_away(
    fleet: WholeFleet, s3_server: S3Server
) -> None:
    first = fleet.ended(fleet.submit("Fix the test, script:fix")["id"])
    with fleet.client() as client:
        [check] = [each for each in client.call(server.DOCTOR) if each["code"] == "D-BLOBS"]
    assert (first["status"], "+    return a + b" in first["patch"]) == ("succeeded", True)
    assert (check["state"], check["found"]) == ("OK", "s3://fleet-blobs/of/a-fleet")
    assert len(s3_server.keys()) >= 2
    assert [path for path in (fleet.data / "blobs").rglob("*") if path.is_file()] == []

    order_id = fleet.submit("Ten steps, script:steps")["id"]
    with fleet.client() as client:
        wait_until(lambda: client.call(orders.SHOW, order_id=order_id)["status"] == "running", seconds=60)
        s3_server.stop()
        wait_until(lambda: "step 10" in str(client.call(orders.SHOW, order_id=order_id)["steps"]), seconds=120)
    s3_server.start()
    order = fleet.ended(order_id)
    assert (order["status"], len(order["runs"])) == ("succeeded", 1)
    assert order["patch"].count("\n+step ") == 10
