"""Flower shows how runs are in the database, also if it missed the events that said so, and counts each event once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from control_plane.core import EndedRun
from control_plane.declarations import drones, orders
from control_plane.declarations.orders import CancelRequest
from control_plane.flower.events import announce_ended_runs
from control_plane.flower.process import OFFLINE_SECONDS
from shared import names
from shared.states import OrderStatus
from tests.support import wait_until
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.flower import RunningFlower, flower_behind_api

pytestmark = pytest.mark.timeout(180)
SECRET_PROMPT = "Rotate the key\n\nIt is sk-very-secret, and the token ghp_0123456789."
LOST = {"order_at_fault": False, "exit_status": "lost"}


@pytest.fixture
def flower(sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory) -> Iterator[RunningFlower]:
    with flower_behind_api(sqlite_url, valkey, core_factory) as running:
        running.api.add_work()
        yield running


def played(flower: RunningFlower) -> dict[str, str]:
    """Runs of each kind, of which no drone tells Flower; the state that each is to have there."""
    api, drone = flower.api, flower.api.add_drone(concurrency=9)
    done, failed, given_back, retried, canceled, active = (
        drone.take(api.submit(f"{kind}: {SECRET_PROMPT}", session=None)) for kind in range(6)
    )
    done.ends()
    failed.ends(OrderStatus.FAILED)
    given_back.ends(status="preempted", give_back=True)
    retried.ends(OrderStatus.FAILED, **LOST)
    api.client.call(orders.CANCEL, CancelRequest(), order_id=canceled.order_id)
    canceled.ends(status="preempted", exit_status="canceled")
    runs = (done, failed, given_back, retried, canceled, active)
    states = ("SUCCESS", "FAILURE", "RETRY", "RETRY", "REVOKED", "STARTED")
    expected = {run.id: state for run, state in zip(runs, states, strict=True)}
    # An order that failed in its last attempt has failed, and the ones before are retries.
    order = api.submit("Try it", max_attempts=3)
    for state in ("RETRY", "RETRY", "FAILURE"):
        attempt = drone.take(order)
        attempt.ends(OrderStatus.FAILED, **LOST)
        expected[attempt.id] = state
    return expected


def tell(flower: RunningFlower, worker: str, kind: str, **fields: Any) -> None:
    """Send an event as the worker itself does."""
    broker = flower.api.core.broker
    with broker.celery.connection() as connection, broker.celery.events.Dispatcher(connection, hostname=worker) as sent:
        sent.send(kind, **fields)


def counted(flower: RunningFlower) -> Counter[str]:
    """The events of tasks that Flower counted for the drone; it lists workers that live."""
    tell(flower, worker_of(flower), "worker-heartbeat", freq=60)
    wait_until(flower.workers)
    return flower.counts()


def worker_of(flower: RunningFlower) -> str:
    (drone,) = flower.api.client.call(drones.LIST)
    return f"{drone['id']}@workstation"


def agrees(flower: RunningFlower, expected: dict[str, str]) -> bool:
    shown = flower.states()
    return {run_id: shown.get(run_id) for run_id in expected} == expected


def test_runs_whose_events_flower_missed_are_shown_as_they_are_and_again_after_a_restart(
    flower: RunningFlower,
) -> None:
    expected = played(flower)
    wait_until(lambda: agrees(flower, expected))
    first = counted(flower)

    flower.kill()
    flower.start()

    wait_until(lambda: agrees(flower, expected))
    assert counted(flower) == first
    ends = {"task-succeeded": 1, "task-failed": 2, "task-retried": 4, "task-revoked": 1}
    assert first == {"task-received": 9, "task-started": 9, **ends}


def test_an_event_that_comes_after_all_is_not_counted_twice_and_flower_tells_nothing_of_the_prompt(
    flower: RunningFlower,
) -> None:
    order = flower.api.submit(SECRET_PROMPT)
    run = flower.api.add_drone().take(order)
    run.ends(reason="ghp_0123456789 was refused")
    wait_until(lambda: agrees(flower, {run.id: "SUCCESS"}))
    before = counted(flower)
    probe = names.new_id()

    for kind in ("task-retried", "task-succeeded"):
        tell(flower, worker_of(flower), kind, uuid=run.id, exception="", result="''", runtime=1.0)
    tell(flower, worker_of(flower), "task-received", uuid=probe, name=names.RUN_TASK, args="", kwargs="")

    wait_until(lambda: probe in flower.states())
    assert flower.states()[run.id] == "SUCCESS"
    assert flower.counts() - before == {"task-received": 1}
    with flower.api.http() as admin:
        page = admin.get(f"/flower/task/{run.id}").text
    told = json.dumps(flower.tasks())
    assert f"order={order['id']} generation={run.generation}" in told
    assert "organization=default" in page
    assert not [word for word in ("Rotate", "sk-very-secret", "ghp_") if word in told + page]


def test_a_drone_that_is_offline_does_not_seem_to_live_because_its_runs_are_added_and_is_no_longer_listed_later(
    flower: RunningFlower,
) -> None:
    drone = flower.api.add_drone()
    missed, announced = drone.take(flower.api.submit()), drone.take(flower.api.submit())
    missed.ends()
    worker = worker_of(flower)
    tell(flower, worker, "worker-heartbeat", freq=60)
    wait_until(lambda: [each["status"] for each in flower.workers()] == [True])
    tell(flower, worker, "worker-offline")
    wait_until(lambda: [each["status"] for each in flower.workers()] == [False])

    announce_ended_runs(flower.api.core, [EndedRun(announced.id, worker, "failed", "the drone fell silent")])

    wait_until(lambda: agrees(flower, {missed.id: "SUCCESS", announced.id: "FAILURE"}))
    assert [each["status"] for each in flower.workers()] == [False]

    now = flower.api.core.clock.now().timestamp()
    tell(flower, "gone@host", "task-received", uuid="0", timestamp=now - OFFLINE_SECONDS - 60)
    tell(flower, "away@host", "task-received", uuid="1", timestamp=now - OFFLINE_SECONDS + 60)
    tell(flower, "here@host", "worker-heartbeat", freq=60)
    shown = wait_until(lambda: len(known := flower.workers()) == 3 and known)
    assert {each["hostname"]: each["status"] for each in shown} == {
        worker: False,
        "here@host": True,
        "away@host": False,
    }
    assert {"0", "1"} <= set(flower.tasks())
