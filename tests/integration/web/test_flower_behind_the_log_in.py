"""Flower at `/flower`: behind the log-in of the pages, audited, and without what a prompt says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from control_plane.contract.declarations import audit, drones
from control_plane.core import EndedRun
from control_plane.telemetry.flower.events import announce_ended_runs
from control_plane.telemetry.flower.process import OFFLINE_SECONDS
from shared import names
from tests.support import wait_until
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.fleet import KEY_HEADER, Api, api_on
from tests.support.flower import PASSWORD, RunningFlower, flower_behind_api
from tests.support.receivers import Receiver

REVOKE = "/flower/api/task/revoke/000000000000"
PAGES = ("/flower/", "/flower/workers", "/flower/tasks", "/flower/broker", "/flower/metrics", "/flower/api/tasks")
pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def flower(sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory) -> Iterator[RunningFlower]:
    with flower_behind_api(sqlite_url, valkey, core_factory) as running:
        running.api.add_work()
        yield running


def test_flower_is_for_admins_of_everything_and_keeps_cookies_and_passwords_to_itself(flower: RunningFlower) -> None:
    """A change in it needs the browser's key and the own site, and is audited."""
    api, html = flower.api, {"Accept": "text/html"}
    with (
        api.browser() as admin,
        api.browser(token=api.token_for("operator")) as operator,
        api.http(api.token_for("admin")) as of_one,
        api.http(api.add_drone().token) as machine,
        api.http(None) as nobody,
    ):
        shown = [admin.get(page) for page in PAGES]
        refused = [operator.get(page, headers=html) for page in PAGES]
        logged_out = [nobody.get(page, headers=html) for page in PAGES]
        codes = {http.get("/flower/").json()["code"] for http in (operator, of_one, machine)}
        linked = "Flower" in operator.get("/").text
        own = admin.get("/").headers["content-security-policy"]
        other_site = admin.post(REVOKE, headers={"Sec-Fetch-Site": "cross-site"})
        without_key = admin.post(REVOKE, headers={KEY_HEADER: ""})
        done = admin.post(REVOKE)
        listed = admin.post("/flower/tasks/datatable", data={"draw": 1, "start": 0, "length": 5, "order[0][column]": 0})
        assert KEY_HEADER in admin.get("/flower/static/js/flower.js").text
    assert [answer.status_code for answer in shown] == [200] * len(PAGES)
    assert not any("set-cookie" in answer.headers or PASSWORD in answer.text for answer in shown)
    assert "'unsafe-inline'" not in shown[0].headers["content-security-policy"].partition("style-src")[0] + own
    assert (codes, linked) == ({"E-ROLE", "E-EVERYWHERE", "E-TOKEN-KIND"}, False)
    assert [answer.status_code for answer in refused] == [403] * len(PAGES)
    # A page that says who may.
    assert all("This requires the role admin; your token has the role operator" in answer.text for answer in refused)
    assert [answer.headers["location"] for answer in logged_out] == [f"/login?next={page}" for page in PAGES]
    address = f"{api.core.settings.flower_upstream}/flower/api/workers"
    assert httpx.get(address, headers={"Authorization": f"Bearer {api.token}"}).status_code == 401

    assert (other_site.json()["code"], without_key.status_code, done.status_code) == ("E-OTHER-SITE", 403, 200)
    assert listed.status_code == 200
    records = [each for each in api.client.call(audit.LIST) if each["action"] == "change_in_flower"]
    assert {each["outcome"] for each in records} == {"began", "changed"}
    assert {each["target"] for each in records} == {f"POST {REVOKE}"}


def test_runs_link_to_their_tasks_for_those_who_may_use_flower_and_without_it_the_page_says_how_to_start_it(
    api: Api, sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    with api.http() as http:
        answer = http.get("/flower/")
    assert (answer.status_code, answer.json()["code"]) == (404, "E-FLOWER-OFF")
    settings = {"flower_upstream": "http://127.0.0.1:9", "flower_password": PASSWORD}
    with api_on(sqlite_url, valkey, core_factory, **settings) as linking:
        linking.add_work()
        order = linking.submit()
        run = linking.add_drone().take(order)
        shown = []
        for token in (linking.token, linking.token_for("admin"), linking.token_for("viewer")):
            with linking.http(token) as http:
                shown.append(http.get(f"/api/v1/orders/{order['id']}").json()["runs"][0]["flower"])
        assert shown == [f"{linking.core.settings.url}/flower/task/{run.id}", None, None]


def test_no_cookie_token_or_foreign_redirect_passes_the_proxy(
    receiver: Receiver, sqlite_url: str, valkey: BrokerServer, core_factory: CoreFactory
) -> None:
    receiver.answers = [302]
    receiver.headers = {"Set-Cookie": "fleet_session_8420=planted; Path=/", "Location": "https://evil.example/"}
    settings = {"flower_upstream": f"http://127.0.0.1:{receiver.port}", "flower_password": PASSWORD}
    with api_on(sqlite_url, valkey, core_factory, **settings) as api, api.browser() as browser, api.http() as script:
        answers = [browser.get("/flower/"), script.get("/flower/")]
    received = [each.headers for each in receiver.sent]
    assert len(received) == 2
    assert all(not {"cookie", KEY_HEADER.lower()} & set(each) for each in received)
    assert {each["authorization"] for each in received} == {httpx.BasicAuth("fleet", PASSWORD)._auth_header}
    assert not any({"set-cookie", "location"} & set(answer.headers) for answer in answers)


SECRET_PROMPT = "Rotate the key\n\nIt is sk-very-secret, and the token ghp_0123456789."


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


def test_an_event_that_comes_after_all_is_not_counted_twice_and_flower_tells_nothing_of_the_prompt(
    flower: RunningFlower,
) -> None:
    """Nor does a drone that is offline seem to live because its runs are added; later it is no longer listed."""
    order = flower.api.submit(SECRET_PROMPT)
    drone = flower.api.add_drone()
    run, announced = drone.take(order), drone.take(flower.api.submit())
    begun_before = drone.take(later := flower.api.submit())
    tell(flower, worker_of(flower), "task-succeeded", uuid=begun_before.id, result="''", runtime=1.0)
    run.ends(reason="ghp_0123456789 was refused")
    wait_until(lambda: agrees(flower, {run.id: "SUCCESS"}))
    wait_until(lambda: f"order={later['id']}" in str(flower.tasks()[begun_before.id]["args"]))
    before, worker = counted(flower), worker_of(flower)
    probe = names.new_id()
    for kind in ("task-retried", "task-succeeded"):
        tell(flower, worker, kind, uuid=run.id, exception="", result="''", runtime=1.0)
    tell(flower, worker, "task-received", uuid=probe, name=names.RUN_TASK, args="", kwargs="")
    wait_until(lambda: probe in flower.states())
    assert flower.states()[run.id] == "SUCCESS"
    assert flower.counts() - before == {"task-received": 1}
    with flower.api.http() as admin:
        page = admin.get(f"/flower/task/{run.id}").text
    told = json.dumps(flower.tasks())
    assert (f"order={order['id']} generation={run.generation}" in told, "organization=default" in page) == (True, True)
    assert not [word for word in ("Rotate", "sk-very-secret", "ghp_") if word in told + page]

    tell(flower, worker, "worker-offline")
    wait_until(lambda: [each["status"] for each in flower.workers()] == [False])
    announce_ended_runs(flower.api.core, [EndedRun(announced.id, worker, "failed", "the drone fell silent")])
    wait_until(lambda: agrees(flower, {announced.id: "FAILURE"}))
    assert [each["status"] for each in flower.workers()] == [False]
    now = flower.api.core.clock.now().timestamp()
    tell(flower, "gone@host", "task-received", uuid="0", timestamp=now - OFFLINE_SECONDS - 60)
    tell(flower, "away@host", "task-received", uuid="1", timestamp=now - OFFLINE_SECONDS + 60)
    tell(flower, "here@host", "worker-heartbeat", freq=60)
    shown = wait_until(lambda: len(known := flower.workers()) == 3 and known)
    status = {each["hostname"]: each["status"] for each in shown}
    assert status == {worker: False, "here@host": True, "away@host": False}
    assert {"0", "1"} <= set(flower.tasks())
