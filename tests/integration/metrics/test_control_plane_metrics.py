"""`/metrics` of the control plane: who may read it, and that its figures are those of the database and the broker."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import httpx
import psycopg
import pytest
from sqlalchemy import func, select, update

from control_plane.broker.broker import Broker
from control_plane.contract.declarations import budgets
from control_plane.contract.declarations.budgets import BudgetRequest
from control_plane.contract.declarations.pools import PoolRequest
from control_plane.core.lookups.organizations import system_caller
from control_plane.core.settings import read_settings
from control_plane.db.drones import Drone
from control_plane.db.installation import Lease
from control_plane.db.orders import Order
from control_plane.db.runs import Run, Step
from control_plane.db.spending import SpendingBlock
from control_plane.operations.drones import pools
from control_plane.operations.retention.keeping import keep
from control_plane.telemetry.metrics.scraping import Scrapes
from shared import names
from shared.errors import Invalid
from shared.events import AssistantStep, Stats, ToolCallStep, ToolResultStep, Usage
from shared.states import OrderStatus
from tests.support import wait_until
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.fleet import Api, PlayedDrone, api_on
from tests.support.metrics import TOKEN, Series, documented, figure, labels_in, of, printed, scrape, series_in
from tests.support.postgres import PostgresServer


@pytest.fixture
def metered(database_url: str, valkey: BrokerServer, core_factory: CoreFactory) -> Iterator[Api]:
    """A control plane with metrics and a project."""
    with api_on(database_url, valkey, core_factory, metrics_token=TOKEN) as api:
        api.add_work()
        yield api


def block_of(order: Order, run_id: str, model: str, spent: int) -> SpendingBlock:
    """A payment of the run: `spent` nanodollars for a model."""
    of_order = {name: getattr(order, name) for name in ("organization_id", "project_id", "session_id")}
    amounts = dict.fromkeys(("granted_nusd", "spent_nusd", "reported_nusd"), spent)
    times = dict.fromkeys(("granted_at", "closed_at"), order.created_at)
    drone = order.drone_id or ""
    return SpendingBlock(run_id=run_id, order_id=order.id, drone_id=drone, model=model, **of_order, **amounts, **times)


def asked(api: Api, token: str | None, **headers: str) -> httpx.Response:
    with api.http(token, **headers) as http:
        return http.get("/metrics")


def test_metrics_are_off_without_a_token_and_a_short_one_is_refused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = asked(api, TOKEN)
    assert (answer.status_code, answer.json()["code"]) == (404, "E-METRICS-OFF")
    monkeypatch.setenv("FLEET_METRICS_TOKEN", "m" * 15)
    with pytest.raises(Invalid, match="FLEET_METRICS_TOKEN"):
        read_settings(database_url="sqlite:////x", broker_url="redis://x", blob_dir="/x")


def test_another_token_is_refused_as_other_requests_are(metered: Api) -> None:
    for token in (None, TOKEN[:-1], TOKEN + "m", "ä" * 32, metered.token):
        headers = {"Authorization": f"Bearer {token}".encode("latin-1")} if token else {}
        answer = httpx.get(f"{metered.url}/metrics", headers=headers, trust_env=False)
        assert (answer.status_code, answer.json()["code"]) == (401, "E-METRICS-TOKEN")
    with metered.http(TOKEN) as http:
        assert http.get("/api/v1/orders").status_code == 401
    assert asked(metered, TOKEN, Host="api.internal:8420").status_code == 200
    assert TOKEN not in repr(metered.core.settings)


MACHINE = {"cpu_percent": 1, "memory_percent": 2, "disk_free_mb": 30, "disk_mb": 400}


def play(api: Api, drone: PlayedDrone) -> str:
    """Orders of which two run, one succeeded, one failed, one waits for a drone and one for a user; a run was lost.

    Returns the id of the run that succeeded.
    """
    drone.take(api.submit("one")).says("Working.")
    done = drone.take(api.submit("two"))
    done.step(AssistantStep(text="I look.", usage=Usage(input_tokens=7, output_tokens=3, cached_tokens=2)))
    done.step(ToolCallStep(call_id="a", tool="shell", arguments={}))
    done.step(ToolResultStep(call_id="a", output="ok"))
    stats = Stats(tool_calls=1, input_tokens=7, output_tokens=3, cached_tokens=2)
    done.ends(stats=stats.model_dump())
    drone.take(api.submit("three")).ends(OrderStatus.FAILED, exit_status="an unheard-of end")
    lost = drone.take(api.submit("four"))
    with api.core.database.write() as db:
        db.execute(update(Run).where(Run.id == lost.id).values(status="lost", ended_at=api.core.clock.now()))
    api.submit("five", labels={"gpu": "yes"})
    drone.take(api.submit("six")).asks("b", "shell", "it may be dangerous")
    return done.id


@pytest.mark.dialects
def test_the_figures_of_orders_runs_money_and_pools_are_those_of_the_database_also_after_a_restart(
    metered: Api,
) -> None:
    metered.client.call(budgets.SET, BudgetRequest(usd=2.0, per="total"), kind="project", name="demo")
    pools.add(metered.core, system_caller(metered.core), PoolRequest(name="burst", labels={"gpu": "yes"}))
    drone = metered.add_drone(concurrency=9)
    run_id = play(metered, drone)
    with metered.core.database.write() as db:
        db.execute(update(Drone).where(Drone.id == drone.id).values(beat={"machine": MACHINE}))
        db.add(Lease(name="leader", holder="one", expires_at=metered.core.clock.now()))
        order = db.get_one(Order, db.get_one(Run, run_id).order_id)
        for model, spent in (("gpt", 300_000_000), ("gpt", 200_000_000), ("other-model", 1)):
            db.add(block_of(order, run_id, model, spent))
        steps = db.scalar(select(func.count()).select_from(Step))
    text = asked(metered, TOKEN).text
    # The documents have every metric with its type and labels.
    known = documented("dronefleet") | documented("fleet_pool")
    assert printed(text) == {name: kind for name, (kind, _) in known.items()}
    assert labels_in(text) == {name: labels for name, (_, labels) in known.items()}
    found = series_in(text)
    states = {"queued": 1.0, "running": 2.0, "awaiting_approval": 1.0, "succeeded": 1.0, "failed": 1.0}
    assert of(found, "dronefleet_orders") == states
    assert of(found, "dronefleet_orders_waiting") == {"for_pool": 1.0, "for_person": 1.0}
    assert of(found, "dronefleet_runs_ended_total") == {"submitted": 1.0, "other": 1.0, "lost": 1.0}
    assert of(found, "dronefleet_tokens_total") == {"input": 7.0, "output": 3.0, "cached": 2.0}
    by = {"organization": "default", "provider": "scripted"}
    target = {"organization": "default", "kind": "project", "target": "demo", "per": "total"}
    pool = {"organization": "default", "pool": "burst"}
    expected: list[tuple[str, dict[str, str], float]] = [
        ("runs_open", {"organization": "default"}, 2),
        ("tool_calls_total", {"organization": "default"}, 1),
        ("steps_total", {"organization": "default"}, steps or 0),
        ("cost_usd_total", {**by, "model": "gpt"}, 0.5),
        ("cost_usd_total", {**by, "model": "other-model"}, 1e-9),
        ("budget_limit_usd", target, 2),
        ("budget_spent_usd", target, 0),
        ("budget_reserved_usd", target, 0),
        ("pool_wanted", pool, 1),
        ("pool_waiting", pool, 1),
        ("pool_drones", pool, 0),
    ]
    told = [(name, labels, figure(found, f"dronefleet_{name}", **labels)) for name, labels, _ in expected]
    assert told == expected
    metered.restart()
    assert lasting(scrape(metered)) == lasting(found)


def lasting(found: dict[Series, float]) -> dict[object, float]:
    """The figures that do not change with time: a drone that sends no heartbeat becomes unresponsive."""
    return {key: value for key, value in found.items() if not key[0].endswith(("_seconds", "_drones"))}


@pytest.mark.dialects
def test_times_of_waiting_orders_drones_leases_and_events_are_measured_on_each_database(metered: Api) -> None:
    asleep, gone = metered.add_drone("asleep"), metered.add_drone("gone")
    there = metered.add_drone("there", concurrency=3)
    there.take(metered.submit(drone="there")).says("Working.")
    old, stale = metered.submit("old", labels={"gpu": "yes"}), metered.submit("stale", labels={"gpu": "yes"})
    metered.submit("young", labels={"gpu": "yes"})
    now = metered.core.clock.now()
    later = now + timedelta(hours=1)
    with metered.core.database.write() as db:
        db.execute(update(Drone).where(Drone.id == asleep.id).values(last_seen_at=now - timedelta(minutes=5)))
        db.execute(update(Drone).where(Drone.id == there.id).values(beat={"machine": MACHINE}, last_seen_at=later))
        db.execute(update(Drone).where(Drone.id == gone.id).values(removed_at=now))
        db.execute(update(Order).where(Order.id == old["id"]).values(created_at=now - timedelta(hours=2)))
        db.execute(update(Order).where(Order.id == stale["id"]).values(waits_because=None))
        db.execute(update(Step).values(drone_at=later - timedelta(seconds=40), at=later))
        db.add(Lease(name="leader", holder="one", expires_at=later))
        db.add(Lease(name=f"stream:{there.id}", holder="one", expires_at=now - timedelta(hours=1)))
    found, labels = scrape(metered), {"organization": "default", "drone": "there"}
    assert not any(("drone", "gone") in each for _, each in found)
    assert of(found, "dronefleet_drones") == {"online": 1.0, "offline": 1.0}
    assert figure(found, "dronefleet_drone_slots", **labels) == 3
    assert figure(found, "dronefleet_drone_disk_free_bytes", **labels) == 30e6
    assert figure(found, "dronefleet_drone_disk_bytes", **labels) == 400e6
    assert figure(found, "dronefleet_drone_last_seen_seconds", **{**labels, "drone": "asleep"}) >= 300
    assert figure(found, "dronefleet_event_lag_seconds", **labels) == pytest.approx(40)
    age = figure(found, "dronefleet_order_waiting_seconds", organization="default", code="no_drone_fits")
    assert 7200 <= age < 7200 + 600
    assert of(found, "dronefleet_orders_waiting") == {"no_drone_fits": 2.0, "none": 1.0}
    leases = [figure(found, "dronefleet_leases", lease=each) for each in ("leader", "collector")]
    assert leases == [1, 0]
    left = figure(found, "dronefleet_lease_seconds", lease="leader", organization="", drone="")
    over = figure(found, "dronefleet_lease_seconds", lease="collector", **labels)
    assert (3000 < left <= 3600, over < -3500) == (True, True)


def test_queues_and_streams_are_measured_in_the_broker_and_without_it_there_are_the_figures_of_the_database(
    metered: Api,
) -> None:
    drone, odd = metered.add_drone("anna"), metered.add_drone("odd")
    broker = metered.core.broker.redis
    broker.lpush(names.queue(drone.id), "one", "two")
    broker.xadd(names.events_stream(drone.id), {"t": "event", "e": "x"}, id="1000-1")
    broker.set(names.queue(odd.id), "no list")
    broker.set(names.events_stream(odd.id), "no stream")
    found, labels = scrape(metered), {"organization": "default", "drone": "anna"}
    kinds = ("dronefleet_queue_messages", "dronefleet_stream_entries")
    assert [figure(found, each, **labels) for each in kinds] == [2, 1]
    assert figure(found, "dronefleet_stream_oldest_seconds", **labels) > 1e9
    assert [figure(found, each, **{**labels, "drone": "odd"}) for each in kinds] == [0, 0]
    metered.broker.stop()
    found = scrape(metered)
    assert [figure(found, "dronefleet_up", part=each) for each in ("broker", "database")] == [0, 1]
    assert of(found, "dronefleet_drones") == {"online": 2.0}
    metered.broker.start()
    wait_until(lambda: figure(scrape(metered), "dronefleet_up", part="broker") == 1)


def test_without_the_database_the_answer_says_so_and_still_counts_the_queues(
    postgres_server: PostgresServer, postgres_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    with api_on(postgres_url, valkey, core_factory, metrics_token=TOKEN) as api:
        drone = api.add_drone("anna")
        api.core.broker.redis.lpush(names.queue(drone.id), "one")
        scrape(api)
        postgres_server.stop()
        try:
            found = scrape(api)
        finally:
            postgres_server.start()
        parts = ("database", "history", "broker")
        assert [figure(found, "dronefleet_up", part=each) for each in parts] == [0, 0, 1]
        assert figure(found, "dronefleet_queue_messages", organization="default", drone="anna") == 1
        assert "metrics are incomplete" in api.log.read_text()
        wait_until(lambda: figure(scrape(api), "dronefleet_up", part="database") == 1)


def test_a_database_that_hangs_holds_up_one_answer_for_its_time_and_is_not_asked_again_meanwhile(
    postgres_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    core = core_factory(postgres_url, broker=Broker(valkey.url), broker_url=valkey.url)
    scrapes = Scrapes(core, database_s=1.0)

    def found() -> dict[Series, float]:
        return series_in(scrapes.answer().decode())

    with closing(psycopg.connect(postgres_url.replace("+psycopg", ""))) as other:
        other.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
        answers = [found(), found()]
        reading = [thread for thread in threading.enumerate() if thread.name == "database metrics"]
        other.rollback()
    assert len(reading) == 1
    assert [figure(each, "dronefleet_up", part="database") for each in answers] == [0, 0]
    again = wait_until(lambda: (now := found()) and figure(now, "dronefleet_up", part="database") == 1 and now)
    assert ("dronefleet_orders", (("organization", "default"), ("status", "queued"))) in again
    core.broker.close()


def test_no_counter_shrinks_when_the_retention_removes_services(metered: Api) -> None:
    drone = metered.add_drone(concurrency=9)
    drone.take(metered.submit("for a user")).ends()
    service = metered.submit("a reading of a code host")
    drone.take(service).ends()
    long_ago = metered.core.clock.now() - timedelta(days=30)
    with metered.core.database.write() as db:
        changed = update(Order).where(Order.id == service["id"])
        db.execute(changed.values(purpose="code_host", ended_at=long_ago))
    before = scrape(metered)
    keep(metered.core)

    after = scrape(metered)
    assert of(after, "dronefleet_orders") == {"succeeded": 1.0}
    assert of(after, "dronefleet_runs_ended_total") == {"submitted": 1.0}
    smaller = [key for key, value in before.items() if key[0].endswith("_total") and after[key] < value]
    assert smaller == []


def test_models_beyond_the_first_hundred_share_a_series_and_keep_it(metered: Api) -> None:
    run = metered.add_drone().take(metered.submit())
    with metered.core.database.write() as db:
        order = db.get_one(Order, run.order_id)
        for number in range(103):
            db.add(block_of(order, run.id, f"model-{number}", 1_000_000_000 + number))
            db.flush()
    found = scrape(metered)
    costs = [labels for name, labels in found if name == "dronefleet_cost_usd_total"]
    assert len(costs) == 101
    assert figure(found, "dronefleet_cost_usd_total", organization="default", provider="other", model="other") > 3
