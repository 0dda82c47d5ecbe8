"""A drone turns against its fleet with all credentials that it has: nothing gets through, and the fleet works on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import redis
from sqlalchemy import select

from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.declarations import audit, orders, projects, providers
from control_plane.contract.declarations.audit import AuditFilter
from control_plane.contract.declarations.orders import OrderFilter, SubmitRequest
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.db.audit import AuditRecord
from control_plane.db.engine import Database, sqlite_url_of
from control_plane.supervisor.broker_access import ACTION
from drone.installation.home import DroneHome
from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import SCRIPTS
from tests.hostile import broker_tries, http_tries, report_tries
from tests.hostile.hostile_drone import ACL_LOG, Doc, HostileDrone, Victims
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.whole_fleet import WholeFleet

pytestmark = [pytest.mark.campaign, pytest.mark.hostile, pytest.mark.timeout(600)]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[WholeFleet]:
    """`fleet up` with Valkey and SQLite, without a drone of its own."""
    with closing(WholeFleet(tmp_path / "fleet", drones=0)) as made:
        made.start()
        yield made


@pytest.fixture
def workers(fleet: WholeFleet, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Two honest drones, of two organizations that have a project each; their ids."""
    remote = f"file://{calc_project(tmp_path / 'calc.git')}"
    with ScriptedServer(SCRIPTS) as model:
        fleet.add_work(model.url, remote)
        fleet.json("organization", "add", "payments", "--description", "Not for drones of others")
        with fleet.client("payments") as payments:
            payments.call(providers.ADD, ProviderRequest(name="scripted", model="openai/scripted", api_base=model.url))
            payments.call(projects.ADD, ProjectRequest(slug="demo", git_url=remote, provider="scripted"))
        drones = fleet.workstation("oka"), fleet.workstation("mila", token_options=("--org", "payments"))
        for drone in drones:
            drone.start()
        yield {each.name: DroneHome(Path(each.environment["DRONE_HOME"])).config().drone_id for each in drones}


@pytest.fixture
def crow(fleet: WholeFleet, workers: dict[str, str]) -> Iterator[HostileDrone]:
    """The hostile drone, in the middle of an order, while the others work."""
    known = json.loads((fleet.data / "up.json").read_text())
    control_url = f"redis://control:{known['broker_password']}@127.0.0.1:{known['broker_port']}/0"
    joined = fleet.workstation("crow")
    client = fleet.client()
    victims = prepare(fleet, client, workers)
    control = redis.Redis.from_url(control_url, decode_responses=True)
    control.config_set("acllog-max-len", ACL_LOG)
    made = HostileDrone.of(
        joined,
        victims=replace(victims, join_token=joined.join_token),
        control=control,
        database=Database(sqlite_url_of(fleet.data / "fleet.db")),
        client=client,
        log=lambda: "".join(path.read_text() for path in fleet.data.glob("logs/*.log")),
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
        done = ended(
            payments, payments.call(orders.SUBMIT, SubmitRequest(prompt="Note it, script:note", project="demo"))["id"]
        )
    asking = in_status(client, asks, "awaiting_approval")
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
    return in_status(client, order_id, "succeeded", "failed", "canceled")


def in_status(client: FleetClient, order_id: str, *wanted: str) -> Doc:
    """The order's document once it has one of these."""

    def reached() -> Doc | None:
        order: Doc = client.call(orders.SHOW, order_id=order_id)
        return order if order["status"] in wanted else None

    return wait_until(reached, seconds=120, every=0.3)


def test_a_hostile_drone_gets_nothing_and_the_fleet_works_on(fleet: WholeFleet, crow: HostileDrone) -> None:
    problems = crow.attempt(broker_tries.tries())
    problems += crow.attempt(report_tries.tries())
    problems += crow.attempt(http_tries.tries())
    crow.finish()
    problems += crow.attempt([*report_tries.after_the_end(), *http_tries.after_the_end()])
    problems += with_revoked_keys(fleet, crow)
    assert "\n".join(problems) == ""
    works_on(fleet, crow)
    # The broker's refusals are read every 30 s.
    wait_until(lambda: crow.client.call(audit.LIST, AuditFilter(actor=crow.id, action=ACTION)), seconds=60)
    crow.client.close()
    assert fleet.stop() == 0
    assert crow.codes - codes_of_unknown_senders(crow) == set()


def with_revoked_keys(fleet: WholeFleet, crow: HostileDrone) -> list[str]:
    """The problems of a drone whose keys were revoked while it was connected."""
    jay = fleet.workstation("jay")
    kept = {name: getattr(crow, name) for name in ("control", "database", "client", "log", "codes")}
    thief = HostileDrone.of(jay, victims=replace(crow.victims, join_token=jay.join_token), **kept)
    with closing(thief.played):
        thief.played.redis.ping()
        assert fleet.fleet("keys", "rotate", "drone", "jay", "--force", "--yes").returncode == 0
        return thief.attempt(http_tries.with_revoked_keys())


def works_on(fleet: WholeFleet, crow: HostileDrone) -> None:
    """The orders from before end as they would have, and each drone does another one: nothing ran twice."""
    crow.leave()
    assert fleet.fleet("approve", crow.victims.oka_order).returncode == 0
    next(drone for drone in fleet.workstations if drone.name == "crow").start()
    later = [fleet.submit("Note it, script:note", "--drone", name)["id"] for name in ("oka", "crow")]
    with fleet.client("payments") as payments:
        last = ended(
            payments, payments.call(orders.SUBMIT, SubmitRequest(prompt="Note it, script:note", project="demo"))["id"]
        )
    done = [fleet.ended(each) for each in (crow.victims.oka_order, crow.victims.oka_waiting, *later)]
    found = [(order["status"], len(order["runs"]), order["attempt"]) for order in (*done, last)]
    assert found == [("succeeded", 1, 1)] * 5
    assert len(crow.client.call(orders.LIST, OrderFilter(limit=1000))) == 5


def codes_of_unknown_senders(crow: HostileDrone) -> set[str]:
    """The codes of refusals whose sender was not known, all from this machine: no header changed that."""
    unknown = AuditRecord.actor_kind == "unknown", AuditRecord.action != ACTION
    with crow.database.read() as db:
        found = db.scalars(select(AuditRecord).where(*unknown)).all()
    assert {record.address for record in found} == {"127.0.0.1"}
    return {record.code for record in found}
