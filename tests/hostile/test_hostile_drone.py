"""A drone turns against its fleet with all credentials that it has: nothing gets through, and the fleet works on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import redis
from sqlalchemy import select

from control_plane.client.fleet import FleetClient
from control_plane.db.audit import AuditRecord
from control_plane.db.engine import Database, sqlite_url_of
from control_plane.declarations import audit, orders, providers
from control_plane.declarations.audit import AuditFilter
from control_plane.declarations.orders import OrderFilter
from control_plane.declarations.providers import ProviderRequest
from control_plane.supervisor.broker_refusals import ACTION
from drone.installation.home import DroneHome
from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import SCRIPTS
from tests.hostile import broker_tries, http_tries, old_key_tries, report_tries
from tests.hostile.hostile_drone import ACL_LOG, UNKNOWN, Doc, HostileDrone, Victims
from tests.support import free_port, wait_until, warm_processes
from tests.support.broker import BrokerServer
from tests.support.repositories import calc_project
from tests.support.warm_processes import FLEET
from tests.support.whole_fleet import ExternalFleet, WholeFleet

pytestmark = [pytest.mark.hostile, pytest.mark.timeout(600)]


@pytest.fixture
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer(SCRIPTS) as server:
        yield server


@dataclass
class Deployed:
    """A fleet of real processes, and the ways to look behind it."""

    fleet: WholeFleet
    control_url: str
    database_url: str
    logs: Callable[[], Iterable[Path]]


@pytest.fixture
def on_valkey(tmp_path: Path) -> Iterator[Deployed]:
    """`fleet up` with Valkey and SQLite, without a drone of its own."""
    fleet = WholeFleet(tmp_path / "fleet", drones=0)
    fleet.start()
    known = json.loads((fleet.data / "up.json").read_text())
    control_url = f"redis://control:{known['broker_password']}@127.0.0.1:{known['broker_port']}/0"
    yield Deployed(fleet, control_url, sqlite_url_of(fleet.data / "fleet.db"), lambda: fleet.data.glob("logs/*.log"))
    fleet.close()


@pytest.fixture
def on_redis(tmp_path: Path, empty_postgres_url: str, redis_server: BrokerServer) -> Iterator[Deployed]:
    """`fleet serve` with the distribution's Redis and PostgreSQL."""
    port = free_port()
    variables = {
        "FLEET_DATABASE_URL": empty_postgres_url,
        "FLEET_BROKER_URL": redis_server.url,
        "FLEET_MASTER_KEY_FILE": str(tmp_path / "master.key"),
        "FLEET_BLOB_DIR": str(tmp_path / "blobs"),
        "FLEET_PORT": str(port),
        "FLEET_URL": f"http://127.0.0.1:{port}",
    }
    fleet = ExternalFleet(tmp_path / "fleet", variables=variables)
    fleet.root.mkdir()
    assert fleet.fleet("db", "upgrade").returncode == 0
    fleet.variables["FLEET_API_TOKEN"] = fleet.fleet("api-token", "create", "--bootstrap").stdout.strip()
    with fleet.log.open("wb") as log:
        fleet.process = warm_processes.popen(
            [*FLEET, "serve", "--role", "all"], env=fleet.environment, stdout=log, stderr=log
        )
    wait_until(lambda: fleet.fleet("drones").returncode == 0, seconds=60, every=0.5)
    yield Deployed(fleet, redis_server.url, empty_postgres_url, lambda: [fleet.log])
    fleet.close()


@pytest.fixture(params=["on_valkey", pytest.param("on_redis", marks=pytest.mark.long)])
def deployed(request: pytest.FixtureRequest) -> Deployed:
    """A fleet on each kind of server."""
    made: Deployed = request.getfixturevalue(request.param)
    return made


@pytest.fixture
def fleet(deployed: Deployed) -> WholeFleet:
    return deployed.fleet


@pytest.fixture
def workers(fleet: WholeFleet, model: ScriptedServer, tmp_path: Path) -> dict[str, str]:
    """Two honest drones, of two organizations that have a project each; their ids."""
    remote = f"file://{calc_project(tmp_path / 'calc.git')}"
    fleet.add_work(model.url, remote)
    fleet.json("organization", "add", "payments", "--description", "Not for drones of others")
    with fleet.client("payments") as payments:
        payments.call(providers.ADD, ProviderRequest(name="scripted", model="openai/scripted", api_base=model.url))
    fleet.json(
        "project", "add", "demo", "--no-check", "--git-url", remote, "--provider", "scripted", "--org", "payments"
    )
    for drone in (fleet.workstation("oka"), fleet.workstation("mila", token_options=("--org", "payments"))):
        drone.start()
    return {name: DroneHome(fleet.root / f"workstation {name}" / "drone").config().drone_id for name in ("oka", "mila")}


@pytest.fixture
def crow(deployed: Deployed, workers: dict[str, str]) -> Iterator[HostileDrone]:
    """The hostile drone, in the middle of an order, while the others work."""
    fleet = deployed.fleet
    joined = fleet.workstation("crow")
    client = fleet.client()
    victims = prepare(fleet, client, workers)
    control = redis.Redis.from_url(deployed.control_url, decode_responses=True)
    control.config_set("acllog-max-len", ACL_LOG)
    made = HostileDrone.of(
        joined,
        victims=replace(victims, join_token=joined.join_token),
        control=control,
        database=Database(deployed.database_url),
        client=client,
        log=lambda: "".join(path.read_text() for path in deployed.logs()),
    )
    with made.online():
        made.begin(fleet.submit("Note it, script:note", "--drone", "crow")["id"])
        yield made


def prepare(fleet: WholeFleet, client: FleetClient, workers: dict[str, str]) -> Victims:
    """Give the others work: an order that waits for approval, one behind it, and one that has ended."""
    fleet.online("oka", seconds=60)
    asks = fleet.submit("Remove it, script:risky", "--approve", "risky", "--drone", "oka")["id"]
    waits = fleet.submit("Note it, script:note", "--drone", "oka")["id"]
    with fleet.client("payments") as payments:
        done = ended(payments, payments.submit({"prompt": "Note it, script:note", "project": "demo"})["id"])
    asking = wait_until(
        lambda: (order := client.call(orders.SHOW, order_id=asks))["status"] == "awaiting_approval" and order,
        seconds=90,
        every=0.3,
    )
    patch = next(step["patch_sha256"] for step in done["steps"] if step["kind"] == "delivered")
    return Victims(
        **workers,
        oka_order=asks,
        oka_run=asking["runs"][0]["id"],
        oka_waiting=waits,
        mila_order=done["id"],
        mila_run=done["runs"][0]["id"],
        mila_patch=patch,
    )


def ended(client: FleetClient, order_id: str) -> Doc:
    """The order's document once it has ended."""
    ends = {"succeeded", "failed", "canceled"}
    return wait_until(
        lambda: (order := client.call(orders.SHOW, order_id=order_id))["status"] in ends and order,
        seconds=120,
        every=0.3,
    )


def test_a_hostile_drone_gets_nothing_and_the_fleet_works_on(fleet: WholeFleet, crow: HostileDrone) -> None:
    problems = crow.attempt(broker_tries.tries())
    problems += crow.attempt(report_tries.tries())
    problems += crow.attempt(http_tries.tries())
    crow.finish()
    problems += crow.attempt([*report_tries.after_the_end(), *http_tries.after_the_end()])
    problems += with_revoked_keys(fleet, crow)
    print_table(crow)
    assert "\n".join(problems) == ""
    assert len(crow.table) > 150
    works_on(fleet, crow)
    # The broker's refusals are read every 30 s.
    wait_until(lambda: crow.client.call(audit.LIST, AuditFilter(actor=crow.id, action=ACTION)), seconds=60)
    crow.client.close()
    assert fleet.stop() == 0
    answered = {row.by.split()[-1] for row in crow.table if row.where == UNKNOWN}
    assert answered - codes_of_unknown_senders(crow) == set()


def with_revoked_keys(fleet: WholeFleet, crow: HostileDrone) -> list[str]:
    """The problems of a drone whose keys were revoked while it was connected."""
    jay = fleet.workstation("jay")
    kept = {name: getattr(crow, name) for name in ("control", "database", "client", "log", "table")}
    thief = HostileDrone.of(jay, victims=replace(crow.victims, join_token=jay.join_token), **kept)
    with closing(thief.played):
        thief.played.redis.ping()
        assert fleet.fleet("keys", "rotate", "drone", "jay", "--force", "--yes").returncode == 0
        return thief.attempt(old_key_tries.tries())


def works_on(fleet: WholeFleet, crow: HostileDrone) -> None:
    """The orders from before end as they would have, and each drone does another one: nothing ran twice."""
    crow.leave()
    assert fleet.fleet("approve", crow.victims.oka_order).returncode == 0
    next(drone for drone in fleet.workstations if drone.name == "crow").start()
    later = [fleet.submit("Note it, script:note", "--drone", name)["id"] for name in ("oka", "crow")]
    with fleet.client("payments") as payments:
        last = ended(payments, payments.submit({"prompt": "Note it, script:note", "project": "demo"})["id"])
    done = [fleet.ended(each) for each in (crow.victims.oka_order, crow.victims.oka_waiting, *later)]
    assert [order["status"] for order in (*done, last)] == ["succeeded"] * 5
    assert [(len(order["runs"]), order["attempt"]) for order in (*done, last)] == [(1, 1)] * 5
    listed = crow.client.call(orders.LIST, OrderFilter(limit=1000))
    assert len(listed) == 5


def print_table(crow: HostileDrone) -> None:
    for row in crow.table:
        print(f"| {row.what} | {row.by} | {row.where} |")  # noqa: T201 - for `pytest -s`


def codes_of_unknown_senders(crow: HostileDrone) -> set[str]:
    """The codes of refusals whose sender was not known, all from this machine: no header changed that."""
    with crow.database.read() as db:
        found = db.scalars(
            select(AuditRecord).where(AuditRecord.actor_kind == "unknown", AuditRecord.action != ACTION)
        ).all()
    assert {record.address for record in found} == {"127.0.0.1"}
    return {record.code for record in found}
