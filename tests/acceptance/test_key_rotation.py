"""Keys are replaced while orders run: the running order ends as it would have, and the queued one is delivered."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from control_plane.declarations import drones, orders, providers
from control_plane.declarations.providers import ProviderEdit
from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def fleet(start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path) -> WholeFleet:
    """A fleet with one drone, whose model requires a key."""
    fleet = start_fleet(drones=1)
    fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
    with fleet.client() as client:
        client.call(providers.EDIT, ProviderEdit(api_key="sk-before-and-after"), name="scripted")
    return fleet


def running_and_queued(fleet: WholeFleet) -> tuple[str, str]:
    """An order that runs for ten seconds, in its second step, and one that waits in the queue of its drone."""
    with fleet.client() as client:
        running = client.submit({"prompt": "Ten steps, script:steps", "project": "demo"})["id"]
        queued = client.submit({"prompt": "Note it, script:note", "project": "demo"})["id"]
        wait_until(
            lambda: "tool_result" in {step["kind"] for step in client.call(orders.SHOW, order_id=running)["steps"]},
            seconds=60,
        )
    return running, queued


def test_orders_continue_while_the_master_key_is_replaced(fleet: WholeFleet) -> None:
    running, queued = running_and_queued(fleet)
    file = fleet.data / "master.key"
    old = file.read_text()
    before = fleet.json("keys", "ls")["master_keys"]

    done = fleet.json("keys", "rotate", "master")

    assert (done["dropped"], done["unreadable"], before[0]["secrets"]) == (1, 0, done["secrets"])
    assert old.strip() not in file.read_text()
    assert [key["fingerprint"] for key in fleet.json("keys", "ls")["master_keys"]] == [done["fingerprint"]]
    later = fleet.submit("Note it, script:note")["id"]
    assert [fleet.ended(each)["status"] for each in (running, queued, later)] == ["succeeded"] * 3


def test_orders_continue_while_a_drone_replaces_its_keys(fleet: WholeFleet) -> None:
    running, queued = running_and_queued(fleet)
    home = fleet.data / "drones" / "local-1"
    old_key, old = (home / "key").read_text(), json.loads((home / "credentials.json").read_text())

    asked = fleet.json("keys", "rotate", "drone", "local-1")

    assert asked["keys_replacing"] is True
    assert [fleet.ended(each)["status"] for each in (running, queued)] == ["succeeded"] * 2
    assert [len(fleet.order(each)["runs"]) for each in (running, queued)] == [1, 1]
    wait_until(lambda: not shown(fleet)["keys_replacing"], seconds=60)
    assert (home / "key").read_text() != old_key
    refused = httpx.get(
        f"{fleet.url}/api/v1/registrations/self", headers={"Authorization": f"Bearer {old['api_token']}"}
    )
    assert refused.status_code == 401
    with pytest.raises(redis.AuthenticationError):
        redis.Redis.from_url(old["broker_url"]).ping()
    assert fleet.ended(fleet.submit("Note it, script:note")["id"])["status"] == "succeeded"


def test_orders_continue_while_the_password_of_the_broker_is_replaced(fleet: WholeFleet) -> None:
    running, queued = running_and_queued(fleet)
    known = json.loads((fleet.data / "up.json").read_text())
    old = f"redis://control:{known['broker_password']}@127.0.0.1:{known['broker_port']}/0"

    done = fleet.fleet("keys", "rotate", "broker")

    assert done.returncode == 0, done.stderr
    with pytest.raises(redis.AuthenticationError):
        redis.Redis.from_url(old).ping()
    later = fleet.submit("Note it, script:note")["id"]
    assert [fleet.ended(each)["status"] for each in (running, queued, later)] == ["succeeded"] * 3
    assert len(fleet.order(running)["runs"]) == 1


def test_a_drone_whose_keys_were_revoked_stops_and_registers_again_with_another_key(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path
) -> None:
    fleet = start_fleet(drones=0)
    fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
    oka = fleet.workstation("oka")
    key = Path(oka.environment["DRONE_HOME"]) / "key"
    old = key.read_text()
    oka.start()
    fleet.online("oka")
    assert fleet.fleet("keys", "rotate", "drone", "oka", "--force").returncode != 0, "without a yes nothing happens"

    revoked = fleet.json("keys", "rotate", "drone", "oka", "--force", "--yes")

    assert revoked["keys_revoked_at"]
    assert oka.process is not None
    assert oka.process.wait(60) == 6
    again = fleet.workstation("oka")
    again.start()
    fleet.online("oka")
    assert key.read_text() != old
    assert fleet.ended(fleet.submit("Note it, script:note")["id"])["status"] == "succeeded"


def shown(fleet: WholeFleet) -> dict[str, Any]:
    with fleet.client() as client:
        return dict(client.call(drones.SHOW, name="local-1"))
