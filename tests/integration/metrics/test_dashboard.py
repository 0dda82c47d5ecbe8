"""The Grafana dashboard in `deploy`: a real Prometheus, which scrapes the fleet, accepts every query of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from sqlalchemy import update

from control_plane.db.drones import Drone
from control_plane.db.installation import Lease
from control_plane.db.orders import Order
from control_plane.declarations import budgets, pools
from control_plane.declarations.budgets import BudgetRequest
from control_plane.declarations.pools import PoolRequest
from drone.metrics.event_counts import EventCounts
from drone.metrics.server import serving
from drone.metrics.worker_state import StateCollector, WorkerState
from shared.events import ToolResultStep, Usage
from tests.support import HeldPort, needs, wait_until
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.documents import ROOT
from tests.support.fleet import Api, api_on
from tests.support.metrics import TOKEN, block_of, documented
from tests.support.prometheus import prometheus

DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy" / "grafana" / "dronefleet.json").read_text(encoding="utf-8"))
QUERIES = [
    target["expr"].replace("$organization", ".*") for panel in DASHBOARD["panels"] for target in panel["targets"]
]
NAME = re.compile(r"\bdrone(?:fleet)?_\w+")
MACHINE = {"cpu_percent": 1, "memory_percent": 2, "disk_free_mb": 30, "disk_mb": 400}


def test_prometheus_reads_the_fleet_and_accepts_every_query(
    sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory, tmp_path: Path
) -> None:
    needs("prometheus")
    (tmp_path / "token").write_text(TOKEN)
    with (
        api_on(sqlite_url, valkey, core_factory, metrics_token=TOKEN) as api,
        HeldPort() as port,
        serving(drone_figures(tmp_path), port),
        prometheus(tmp_path, jobs(api.port, port, tmp_path / "token")) as server,
    ):
        fill(api)
        named = {name for query in QUERIES for name in NAME.findall(query)}
        wait_until(lambda: not named - server.names(), seconds=60)
        for query in QUERIES:
            server.query(query)
        assert server.query('dronefleet_orders{status="running"}')[0]["value"][1] == "1"
        wait_until(lambda: server.problems() == [])


def test_the_dashboard_shows_every_metric() -> None:
    named = {re.sub(r"_bucket$", "", name) for query in QUERIES for name in NAME.findall(query)}
    assert named == {*documented("dronefleet"), *documented("drone")}


def test_panels_have_titles_and_ids_of_their_own_and_lie_beside_each_other() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23


def test_a_query_that_is_none_is_refused(tmp_path: Path) -> None:
    with prometheus(tmp_path, []) as server, pytest.raises(AssertionError, match="bad_data"):
        server.query("sum(")


def jobs(api_port: int, drone_port: int, token: Path) -> list[dict[str, Any]]:
    """The jobs of the example in `deploy`, with the addresses of this test."""
    control_plane = {
        "job_name": "dronefleet",
        "authorization": {"credentials_file": str(token)},
        "static_configs": [{"targets": [f"127.0.0.1:{api_port}"]}],
    }
    return [control_plane, {"job_name": "drones", "static_configs": [{"targets": [f"127.0.0.1:{drone_port}"]}]}]


def fill(api: Api) -> None:
    """Something of everything that has a series."""
    api.add_work()
    api.client.call(budgets.SET, BudgetRequest(usd=2.0, per="total"), kind="project", name="demo")
    api.client.call(pools.ADD, PoolRequest(name="burst"))
    drone = api.add_drone("anna")
    run = drone.take(api.submit())
    run.says("Working.")
    api.submit("Wait", labels={"gpu": "yes"})
    with api.core.database.write() as db:
        db.add(block_of(db.get_one(Order, run.order_id), run.id, "gpt", 1))
        db.add(Lease(name="leader", holder="one", expires_at=api.core.clock.now()))
        db.execute(update(Drone).where(Drone.id == drone.id).values(beat={"machine": MACHINE}))


def drone_figures(workspace: Path) -> CollectorRegistry:
    """What the worker of a drone serves after an answer and a call."""
    registry = CollectorRegistry(auto_describe=False)
    counts = EventCounts(registry)
    counts.answered(Usage(input_tokens=1), 1000)
    counts.called("shell", ToolResultStep(call_id="a", output=""))
    state = WorkerState(runs=1, slots=2, beat_age_s=1.0, unsent_bytes=0)
    registry.register(StateCollector(lambda: state, workspace, restarts=0))
    return registry
