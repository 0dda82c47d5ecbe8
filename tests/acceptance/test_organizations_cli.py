"""Organizations from the terminal: created, given work and removed, on drones that serve all of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from control_plane.client.fleet import FleetClient
from control_plane.declarations import drones, orders, organizations, providers
from control_plane.declarations.orders import OrderFilter
from control_plane.declarations.providers import ProviderRequest
from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.whole_fleet import WholeFleet

Doc = dict[str, Any]
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def remote(tmp_path: Path) -> str:
    return f"file://{calc_project(tmp_path / 'calc.git')}"


def member(fleet: WholeFleet, organization: str, role: str = "admin") -> FleetClient:
    """A client with a token of this organization."""
    done = fleet.fleet("api-token", "create", "--role", role, "--org", organization)
    assert done.returncode == 0, done.stderr
    return FleetClient(fleet.url, done.stdout.strip(), organization)


def work(fleet: WholeFleet, client: FleetClient, model_url: str, git_url: str) -> Doc:
    """The document of an order that ran to its end in the client's organization."""
    client.call(providers.ADD, ProviderRequest(name="scripted", model="openai/scripted", api_base=model_url))
    # By the administrator of the fleet: to others, the disk of a drone is closed.
    added = (
        "project",
        "add",
        "demo",
        "--no-check",
        "--git-url",
        git_url,
        "--provider",
        "scripted",
        "--org",
        client.organization,
    )
    assert fleet.json(*added)["slug"] == "demo"
    order = client.submit({"prompt": "Note it, script:note", "project": "demo"})
    ended = {"succeeded", "failed", "canceled"}
    return wait_until(
        lambda: (shown := client.call(orders.SHOW, order_id=order["id"]))["status"] in ended and shown,
        seconds=120,
        every=0.3,
    )


def test_an_order_of_one_organization_runs_to_its_end_on_a_drone_of_another(
    shared_fleet: WholeFleet, model: ScriptedServer, remote: str
) -> None:
    fleet = shared_fleet
    made = fleet.json("organization", "add", "serving_test", "--description", "Served by others", "--concurrency", "2")
    assert (made["name"], made["acronym"], made["concurrency"]) == ("serving_test", "STTT", 2)
    with member(fleet, "serving_test") as client:
        order = work(fleet, client, model.url, remote)
        assert (order["status"], order["organization"], order["drone"]) == ("succeeded", "serving_test", "local-1")
        assert "note" in order["patch"]
        assert [drone["name"] for drone in client.call(drones.LIST)] == ["local-1"]
        assert client.call(drones.SHOW, name="local-1")["organization"] is None
        shown = client.call(organizations.SHOW, name="serving_test")
        assert (shown["totals"]["runs"], shown["agents"]) == (1, [])
        with fleet.client() as admin:
            assert order["id"] not in {each["id"] for each in admin.call(orders.LIST, OrderFilter(limit=1000))}
            assert admin.call(drones.SHOW, name="local-1")["doing"] == []

    refused = fleet.fleet("organization", "rm", "serving_test")
    assert refused.returncode == 2, "without a yes nothing happens"
    removed = fleet.fleet("organization", "rm", "serving_test", "--yes")
    assert removed.returncode == 0, removed.stderr
    assert "1 order was deleted with its runs" in removed.stderr
    assert fleet.fleet("organization", "show", "serving_test").returncode == 3


def test_the_commands_of_organizations_say_what_they_did_and_refuse_what_cannot_be(shared_fleet: WholeFleet) -> None:
    fleet = shared_fleet
    assert fleet.json("organization", "create", "cli_test")["acronym"] == "CTTT"
    assert fleet.fleet("organization", "add", "cli_test").returncode == 4
    assert fleet.fleet("organization", "add", "user").returncode == 2
    assert fleet.fleet("organization", "edit", "cli_test").returncode == 2
    edited = fleet.json("organization", "edit", "cli_test", "--concurrency", "0", "--max-hand-offs", "7")
    assert (edited["concurrency"], edited["max_hand_offs"]) == (0, 7)
    assert fleet.json("organization", "pause", "cli_test")["paused"] is True
    assert "paused" in fleet.fleet("organization", "show", "cli_test").stdout
    assert fleet.json("organization", "resume", "cli_test")["paused"] is False
    assert {"default", "cli_test"} <= {each["name"] for each in fleet.json("organization", "list")}
    viewer = member(fleet, "cli_test", "viewer")
    assert [each["name"] for each in viewer.call(organizations.LIST)] == ["cli_test"]
    viewer.close()
    token = fleet.json("token", "create", "--serves", "cli_test")
    assert token["serves"] == ["cli_test"]
    assert fleet.json("token", "create", "--serves-all")["serves"] == ["*"]
    assert fleet.json("api-token", "create", "--role", "admin", "--everywhere")["everywhere"] is True
    assert fleet.fleet("organization", "delete", "default", "--yes").returncode == 4
    assert fleet.fleet("organization", "delete", "cli_test", "--yes").returncode == 0


@pytest.mark.long
def test_a_drone_that_was_embedded_before_there_were_organizations_serves_them_after_a_restart(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, remote: str
) -> None:
    fleet = start_fleet()
    fleet.stop()
    with sqlite3.connect(fleet.data / "fleet.db") as db:
        db.execute("UPDATE drones SET serves = '[]'")
    db.close()
    fleet.start()
    fleet.json("organization", "add", "payments")
    with member(fleet, "payments") as client:
        assert work(fleet, client, model.url, remote)["drone"] == "local-1"
    assert json.loads((fleet.root / "fleet home" / "server.json").read_text())["token"].startswith("fa_")


@pytest.mark.long
def test_a_workstation_serves_whom_its_join_token_names_and_a_removed_organizations_drone_ends(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, remote: str
) -> None:
    fleet = start_fleet(drones=0)
    for name in ("payments", "research"):
        fleet.json("organization", "add", name)
    oka = fleet.workstation("oka", token_options=("--org", "payments", "--serves", "research"))
    oka.start()
    with member(fleet, "research") as client:
        wait_until(lambda: [each["status"] for each in client.call(drones.LIST)] == ["online"], seconds=60, every=0.3)
        order = work(fleet, client, model.url, remote)
        assert (order["status"], order["drone"]) == ("succeeded", "oka")
        assert fleet.json("drones") == []
        assert fleet.fleet("organization", "rm", "payments", "--yes").returncode == 0
        assert oka.process is not None
        assert oka.process.wait(60) == 6
        assert client.call(drones.LIST) == []
        assert client.call(orders.SHOW, order_id=order["id"])["drone"] == "oka"
