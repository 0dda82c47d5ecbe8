"""A fleet that keeps its blobs in a bucket (of a stand-in server): patches and logs, also when the server was away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from control_plane.declarations import orders, server
from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.s3_server import S3Server
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(300)


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


def test_an_order_has_its_patch_and_its_log_from_the_bucket(fleet: WholeFleet, s3_server: S3Server) -> None:
    order = fleet.ended(fleet.submit("Fix the test, script:fix")["id"])

    assert order["status"] == "succeeded"
    assert "+    return a + b" in order["patch"]
    assert len(s3_server.keys()) >= 2
    assert [path for path in (fleet.data / "blobs").rglob("*") if path.is_file()] == []
    with fleet.client() as client:
        [check] = [each for each in client.call(server.DOCTOR) if each["code"] == "D-BLOBS"]
    assert (check["state"], check["found"]) == ("OK", "s3://fleet-blobs/of/a-fleet")


def test_work_that_ends_while_the_server_is_away_is_delivered_when_it_is_back(
    fleet: WholeFleet, s3_server: S3Server
) -> None:
    order_id = fleet.submit("Ten steps, script:steps")["id"]
    with fleet.client() as client:
        wait_until(lambda: client.call(orders.SHOW, order_id=order_id)["status"] == "running", seconds=60)
        s3_server.stop()
        wait_until(lambda: "step 10" in str(client.call(orders.SHOW, order_id=order_id)["steps"]), seconds=120)
    s3_server.start()

    order = fleet.ended(order_id)

    assert (order["status"], len(order["runs"])) == ("succeeded", 1)
    assert order["patch"].count("\n+step ") == 10
